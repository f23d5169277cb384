package braid.schedule.plan;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.AllReduce;
import braid.model.Collective;
import braid.model.CollectiveWay;
import braid.model.DType;
import braid.schedule.Step;
import braid.schedule.plan.CollectiveSpec.LibraryNeeds;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Standalone collectives pass the check: on all numbers of ranks, by copies that fetch, copies
/// that write, and library calls with and without meetings.
class CollectiveSchedulesTest {
  private static final boolean[] FLAGS = {false, true};

  /// Parts of a megabyte or more are split into chunks.
  private static final long[] SIZES = {1, 7, 48, 700_001};

  private static List<CollectiveSpec> specs(int ranks) {
    var specs = new ArrayList<CollectiveSpec>();
    for (var collective : Collective.values()) {
      if (collective.isMessage()) {
        continue;
      }
      for (long size : ranks > 4 ? new long[] {1, 48} : SIZES) {
        long elements = collective == Collective.ALL_REDUCE ? size : size * ranks;
        specs.add(spec(collective, elements, CollectiveWay.COPY_ENGINE, LibraryNeeds.NONE));
        specs.add(spec(collective, elements, CollectiveWay.ONE_KERNEL, LibraryNeeds.NONE));
        if (collective == Collective.ALL_REDUCE) {
          specs.add(oneShot(elements, false));
          specs.add(oneShot(elements, false, CollectiveWay.ONE_KERNEL, 0));
        }
        if (!collective.adds()) {
          specs.add(spec(collective, elements, CollectiveWay.PUSHING, LibraryNeeds.NONE));
        }
        specs.add(spec(collective, elements, CollectiveWay.NCCL_KERNELS, LibraryNeeds.NONE));
        specs.add(
            spec(
                collective,
                elements,
                CollectiveWay.NCCL_KERNELS,
                new LibraryNeeds(true, true, false)));
        specs.add(
            spec(
                collective,
                elements,
                CollectiveWay.NVSHMEM_PUTS,
                new LibraryNeeds(true, false, true)));
      }
    }
    return specs;
  }

  private static CollectiveSpec spec(
      Collective collective, long elements, CollectiveWay way, LibraryNeeds needs) {
    boolean inPlace = collective == Collective.BROADCAST || collective == Collective.BARRIER;
    return new CollectiveSpec(
        collective, DType.FP32, elements, 0, inPlace, AllReduce.TWO_SHOT, way, 0, needs);
  }

  private static CollectiveSpec oneShot(long elements, boolean inPlace) {
    return oneShot(elements, inPlace, CollectiveWay.WORKERS, 2);
  }

  private static CollectiveSpec oneShot(
      long elements, boolean inPlace, CollectiveWay way, int workers) {
    return new CollectiveSpec(
        Collective.ALL_REDUCE,
        DType.BF16,
        elements,
        0,
        inPlace,
        AllReduce.ONE_SHOT,
        way,
        workers,
        LibraryNeeds.NONE);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
  void everyCollectivePasses(int ranks) {
    for (var spec : specs(ranks)) {
      assertThat(CollectivePlanner.plan(spec, ranks).findings())
          .as("%s on %d ranks", spec, ranks)
          .isEmpty();
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 5, 8})
  void aSumInPlacePasses(int ranks) {
    for (long elements : SIZES) {
      for (var way : List.of(CollectiveWay.COPY_ENGINE, CollectiveWay.ONE_KERNEL)) {
        var spec =
            new CollectiveSpec(
                Collective.ALL_REDUCE,
                DType.BF16,
                elements,
                0,
                true,
                AllReduce.TWO_SHOT,
                way,
                0,
                LibraryNeeds.NONE);
        assertThat(CollectivePlanner.plan(spec, ranks).findings())
            .as("%s on %d ranks", spec, ranks)
            .isEmpty();
      }
    }
  }

  /// In one chunk, and in the largest number of chunks that fit the inbox.
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
  void aOneShotSumInPlacePasses(int ranks) {
    for (long elements : new long[] {1, 48, 1 << 20}) {
      for (var spec :
          List.of(oneShot(elements, true), oneShot(elements, true, CollectiveWay.ONE_KERNEL, 0))) {
        assertThat(CollectivePlanner.plan(spec, ranks).findings())
            .as("%s on %d ranks", spec, ranks)
            .isEmpty();
      }
    }
  }

  /// Without messages, as one kernel makes none.
  @ParameterizedTest
  @EnumSource(
      value = Collective.class,
      names = {"SEND", "RECEIVE"},
      mode = EnumSource.Mode.EXCLUDE)
  void everySignalOfOneKernelIsNeeded(Collective collective) {
    for (var algorithm : AllReduce.values()) {
      for (boolean inPlace : collective == Collective.ALL_REDUCE ? FLAGS : new boolean[] {false}) {
        var spec =
            new CollectiveSpec(
                collective,
                DType.BF16,
                48,
                0,
                inPlace || collective == Collective.BROADCAST,
                algorithm,
                CollectiveWay.ONE_KERNEL,
                0,
                LibraryNeeds.NONE);
        var schedule = CollectivePlanner.plan(spec, 3);
        for (int rank = 0; rank < 3; rank++) {
          var steps = schedule.steps(rank);
          for (int at = 0; at < steps.size(); at++) {
            var removed = new ArrayList<>(steps);
            var step = removed.remove(at);
            assertThat(schedule.with(rank, removed).findings())
                .as("%s without %s", spec, step.name(rank, at))
                .isNotEmpty();
          }
        }
      }
    }
  }

  @Test
  void aOneShotSumInPlaceNeedsItsSignals() {
    var schedule = CollectivePlanner.plan(oneShot(48, true), 3);
    var hasty =
        schedule.steps(0).stream()
            .filter(step -> !(step instanceof Step.Wait wait && wait.flag().name().equals("free")))
            .toList();
    assertThat(schedule.with(0, hasty).findings()).isNotEmpty();
  }

  @Test
  void aOneShotSumTakesOneRoundOfFetchesAndATwoShotSumTwo() {
    assertThat(fetched(oneShot(48, false), 4)).isEqualTo(3 * 48);
    assertThat(
            fetched(
                spec(Collective.ALL_REDUCE, 48, CollectiveWay.COPY_ENGINE, LibraryNeeds.NONE), 4))
        .isEqualTo(2 * 3 * 12);
  }

  /// Returns the number of elements that rank 0 copies from other ranks' tensors.
  private static long fetched(CollectiveSpec spec, int ranks) {
    return CollectivePlanner.plan(spec, ranks).steps(0).stream()
        .filter(Step.Copy.class::isInstance)
        .flatMap(step -> ((Step.Copy) step).moves().stream())
        .filter(move -> move.from().rank() != 0)
        .mapToLong(move -> move.from().rows())
        .sum();
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2})
  void everyRootPasses(int root) {
    for (var way :
        List.of(CollectiveWay.COPY_ENGINE, CollectiveWay.ONE_KERNEL, CollectiveWay.PUSHING)) {
      var spec =
          new CollectiveSpec(
              Collective.BROADCAST,
              DType.FP16,
              12,
              root,
              true,
              AllReduce.TWO_SHOT,
              way,
              0,
              LibraryNeeds.NONE);
      assertThat(CollectivePlanner.plan(spec, 3).findings()).as("%s", spec).isEmpty();
    }
  }
}
