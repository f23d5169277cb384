package braid.schedule;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.Capabilities;
import braid.internal.selftest.AttentionOracle;
import braid.internal.selftest.PipelineCase;
import braid.internal.selftest.PipelineCases;
import braid.model.AttentionSpec;
import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.Collective;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.Fused;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.model.TokenLayout;
import braid.model.Transport;
import braid.schedule.simulation.Machine;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Schedules whose collectives a library runs: each is proven, and each signal in them is needed.
class LibrarySchedulesTest {
  private static final List<Transport> LIBRARIES =
      Arrays.stream(Transport.values()).filter(Transport::isLibrary).toList();

  private static List<PipelineCase> cases(int ranks) {
    var rows =
        Capabilities.of(BackendKind.CUDA).stream()
            .filter(row -> row.transport().isLibrary())
            .toList();
    var cases = new ArrayList<>(PipelineCases.table(rows, ranks));
    cases.addAll(PipelineCases.featuresAndOptions(rows, ranks));
    return cases.stream().distinct().toList();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 8})
  void g4EveryScheduleOfALibraryPassesTheCheck(int ranks) {
    var cases = cases(ranks);
    assertThat(cases).extracting(each -> each.tuning().transport()).containsAll(LIBRARIES);
    for (var each : cases) {
      var schedule = Schedule.of(each.spec(), each.tuning(), ranks);
      assertThat(schedule.findings()).as("%s, %s", each.spec(), each.tuning()).isEmpty();
      assertThat(schedule.steps(0)).anyMatch(Step.LibraryCall.class::isInstance);
      for (int rank = 0; rank < ranks; rank++) {
        readsAlignedBytes(each, schedule.steps(rank));
      }
    }
  }

  /// NCCL's symmetric kernels read wrong numbers from addresses that are no multiple of 4 bytes.
  private static void readsAlignedBytes(PipelineCase tested, List<Step> steps) {
    for (var step : steps) {
      if (step instanceof Step.LibraryCall call
          && call.lane().transport() == Transport.NCCL_SYMMETRIC) {
        var x = call.x();
        long offset = x.row() * x.buffer().columns(x.rank()) * x.buffer().dtype().bytes();
        assertThat(offset % 4).as("%s, %s", tested.spec(), tested.tuning()).isZero();
      }
    }
  }

  @Test
  void attentionByALibraryThatMultipliesIsRefused() {
    assertThatThrownBy(
            () ->
                Schedule.of(
                    AttentionSpec.of(24, 4, 8),
                    ContextParallel.allGatherKv().over(Transport.CUBLASMP),
                    2))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "attention does not exist over cublasmp, which exchanges in multiplications only; take over(NCCL_KERNELS)");
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 8})
  void attentionGathersKeysByALibrary(int ranks) {
    for (var layout : TokenLayout.values()) {
      var spec = AttentionSpec.of(12 * ranks, 4, 8).kvHeads(2).layout(layout);
      if (layout == TokenLayout.WHOLE_SEQUENCES) {
        continue;
      }
      for (var masked :
          List.of(
              spec,
              spec.causal(),
              spec.causal().window(5),
              spec.causal().fused(Fused.KV),
              spec.keys(24 * ranks).causal(),
              spec.fused(Fused.QKV))) {
        if (!AttentionOracle.canDivide(masked, ranks)) {
          continue;
        }
        for (var library : LIBRARIES.stream().filter(each -> !each.multiplies()).toList()) {
          for (var tuning :
              List.of(
                  ContextParallel.unfused(),
                  ContextParallel.allGatherKv(),
                  ContextParallel.allGatherKv().splits(3).streams(2))) {
            var schedule = Schedule.of(masked, tuning.over(library), ranks);
            assertThat(schedule.findings()).as("%s, %s", masked, tuning.over(library)).isEmpty();
            assertThat(schedule.steps(ranks - 1))
                .filteredOn(Step.LibraryCall.class::isInstance)
                .hasSize((masked.fused() == Fused.NONE ? 2 : 1) * tuning.splits());
          }
        }
      }
    }
  }

  @Test
  void attentionThatALibraryCannotExchangeIsRefused() {
    var spec = AttentionSpec.of(48, 4, 8);
    refused(
        "ring does not exist over nccl_kernels: a library runs whole collectives; take"
            + " allGatherKv(), or over(COPY_ENGINE)",
        () -> Schedule.of(spec, ContextParallel.ring().over(Transport.NCCL_KERNELS), 4));
    var gather = ContextParallel.allGatherKv().over(Transport.NCCL_KERNELS);
    refused(
        "gradients of attention are not exchanged over nccl_kernels, which adds parts of all ranks"
            + " alike; take over(COPY_ENGINE)",
        () -> Schedule.of(spec.backward(), gather, 4));
    refused(
        "nccl_kernels gathers equal parts, so each of 4 ranks must have as many tokens but rank 0"
            + " has 13 of 49; take over(COPY_ENGINE)",
        () -> Schedule.of(AttentionSpec.of(49, 4, 8), gather, 4));
  }

  private static List<Collective> calls(GemmSpec spec, Overlap overlap) {
    return Schedule.of(spec, overlap, 4).steps(1).stream()
        .filter(Step.LibraryCall.class::isInstance)
        .map(step -> ((Step.LibraryCall) step).collective())
        .toList();
  }

  @Test
  void aChunkIsOneCall() {
    var overlap = Overlap.pipelined(3).over(Transport.NCCL_KERNELS);
    assertThat(calls(GemmSpec.allGatherGemm(48, 8, 8), overlap))
        .hasSize(3)
        .containsOnly(Collective.ALL_GATHER);
    assertThat(calls(GemmSpec.gemmReduceScatter(48, 8, 8), overlap))
        .hasSize(3)
        .containsOnly(Collective.REDUCE_SCATTER);
    assertThat(calls(GemmSpec.gemmAllReduce(47, 8, 8), overlap))
        .hasSize(3)
        .containsOnly(Collective.ALL_REDUCE);
    var bulk = Overlap.bulk().over(Transport.NCCL_KERNELS);
    assertThat(calls(GemmSpec.besideAllGather(8, 8, 8, 16), bulk))
        .containsExactly(Collective.ALL_GATHER);
  }

  @Test
  void aPlainSumNeedsNoFurtherStep() {
    var overlap = Overlap.pipelined(2).over(Transport.NCCL_KERNELS);
    for (var spec :
        List.of(GemmSpec.gemmAllReduce(48, 8, 8), GemmSpec.gemmReduceScatter(48, 8, 8))) {
      assertThat(Schedule.of(spec, overlap, 4).steps(0)).noneMatch(Step.Reduce.class::isInstance);
      assertThat(Schedule.of(spec.bias(), overlap, 4).steps(0))
          .filteredOn(Step.Reduce.class::isInstance)
          .hasSize(2);
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"NCCL_COPY_ENGINE", "NCCL_SYMMETRIC", "NVSHMEM_PUTS"})
  void g2CallsThatNothingAbortsFollowSignalsOfAllRanks(Transport library) {
    var overlap = Overlap.pipelined(2).over(library);
    var schedule = Schedule.of(GemmSpec.allGatherGemm(48, 8, 8), overlap, 4);
    var steps = schedule.steps(2);
    for (int number = 0; number < steps.size(); number++) {
      if (steps.get(number) instanceof Step.LibraryCall call) {
        var before =
            steps.subList(0, number).stream()
                .filter(step -> step instanceof Step.Wait && step.chunk() == call.chunk())
                .map(step -> ((Step.Wait) step).from());
        assertThat(before).contains(0, 1, 3);
        assertThat(call.x().buffer().symmetric()).isTrue();
        assertThat(call.y().buffer().symmetric()).isTrue();
      }
    }
  }

  @Test
  void ranksThatCallInAnotherOrderAreFound() {
    var schedule =
        Schedule.of(
            GemmSpec.gemmAllReduce(48, 8, 8), Overlap.pipelined(2).over(Transport.NCCL_KERNELS), 2);
    var fewer = schedule.without(1, step -> step instanceof Step.LibraryCall && step.chunk() == 1);
    assertThat(fewer.findings())
        .anyMatch(line -> line.contains("rank 1 makes 1 library calls but others make 2"));
  }

  @Test
  void aCallBeforeItsGemmIsARace() {
    var schedule =
        Schedule.of(
            GemmSpec.gemmAllReduce(48, 8, 8), Overlap.pipelined(2).over(Transport.NCCL_KERNELS), 2);
    assertThat(schedule.without(0, Step.After.class::isInstance).findings())
        .anyMatch(line -> line.startsWith("race on output of rank 0"));
  }

  /// The end of this rank's puts says nothing about those of its peers.
  @Test
  void readingBeforePeersHavePutIsARace() {
    var schedule =
        Schedule.of(
            GemmSpec.allGatherGemm(48, 8, 8), Overlap.pipelined(2).over(Transport.NVSHMEM_PUTS), 2);
    var steps = new ArrayList<>(schedule.steps(0));
    int call = 0;
    for (int place = 0; place < steps.size(); place++) {
      if (steps.get(place) instanceof Step.LibraryCall) {
        call = place;
      } else if (steps.get(place) instanceof Step.Mark mark && call > 0) {
        assertThat(steps.subList(call + 1, place))
            .anyMatch(step -> step instanceof Step.Wait wait && wait.from() == 1);
        steps.remove(place);
        steps.add(call + 1, mark);
        break;
      }
    }
    assertThat(schedule.findings()).isEmpty();
    assertThat(schedule.with(0, steps).findings())
        .anyMatch(line -> line.startsWith("race on gathered of rank 0, rows"));
  }

  @Test
  void theSimulatorPrefersOverlapAlsoByALibrary() {
    var machine = Machine.h200x8();
    var spec = GemmSpec.allGatherGemm(8192, 7168, 8192).dtype(braid.model.DType.BF16);
    var unfused = Overlap.unfused().over(Transport.NCCL_KERNELS);
    var pipelined = Overlap.pipelined(4).over(Transport.NCCL_KERNELS);
    long one = Schedule.of(spec, unfused, 4).simulate(machine).slowestNanos(0);
    long four = Schedule.of(spec, pipelined, 4).simulate(machine).slowestNanos(0);
    assertThat(four).isLessThan(one);
  }

  private static void refused(String message, Runnable call) {
    assertThatThrownBy(call::run).isInstanceOf(BraidException.class).hasMessage(message);
  }

  @Test
  void f10TuningsThatALibraryLacksAreRefused() {
    var gather = GemmSpec.allGatherGemm(48, 8, 8);
    refused(
        "ring of all-gather-gemm does not exist over nccl_kernels: a library runs whole"
            + " collectives; take pipelined(n), or over(COPY_ENGINE)",
        () -> Schedule.of(gather, Overlap.ring().over(Transport.NCCL_KERNELS), 4));
    refused(
        "pipelined of gemm-beside-all-gather does not exist over nccl_symmetric: other data is"
            + " gathered or added in one call, beside the multiplication; take bulk()",
        () ->
            Schedule.of(
                GemmSpec.besideAllGather(8, 8, 8, 16),
                Overlap.pipelined(2).over(Transport.NCCL_SYMMETRIC),
                4));
    refused(
        "pipelined of gemm-all-reduce does not exist over nccl_copy_engine: it does not add; take"
            + " over(NCCL_KERNELS), or over(COPY_ENGINE)",
        () ->
            Schedule.of(
                GemmSpec.gemmAllReduce(48, 8, 8),
                Overlap.pipelined(2).over(Transport.NCCL_COPY_ENGINE),
                4));
    refused(
        "m must be a multiple of the 4 ranks over nccl_kernels, which takes equal parts, but was"
            + " 47; try 48, or over(COPY_ENGINE)",
        () ->
            Schedule.of(
                GemmSpec.allGatherGemm(47, 8, 8),
                Overlap.pipelined(2).over(Transport.NCCL_KERNELS),
                4));
    var odd = GemmSpec.allGatherGemm(28, 13, 7).dtype(DType.FP8_E4M3).output(DType.BF16);
    var symmetric = Overlap.pipelined(3).over(Transport.NCCL_SYMMETRIC);
    refused(
        "over nccl_symmetric several chunks need rows of a multiple of 4 bytes, since NCCL 2.28"
            + " reads wrong numbers from other addresses, but a row has 7; take splits(1), or"
            + " over(NCCL_KERNELS)",
        () -> Schedule.of(odd, symmetric, 4));
    refused(
        "over nccl_symmetric several chunks need rows of a multiple of 4 bytes, since NCCL 2.28"
            + " reads wrong numbers from other addresses, but a row has 14; take splits(1), or"
            + " over(NCCL_KERNELS)",
        () ->
            Schedule.of(
                GemmSpec.gemmAllReduce(24, 7, 8).dtype(DType.BF16),
                Overlap.pipelined(2).boundaries(0, 5, 24).over(Transport.NCCL_SYMMETRIC),
                4));
    for (var each :
        List.of(
            Overlap.pipelined(1).over(Transport.NCCL_SYMMETRIC),
            Overlap.pipelined(3).over(Transport.NCCL_KERNELS))) {
      assertThat(Schedule.of(odd, each, 4).findings()).isEmpty();
    }
    var even = GemmSpec.allGatherGemm(28, 13, 8).dtype(DType.FP8_E4M3).output(DType.BF16);
    assertThat(Schedule.of(even, symmetric, 4).findings()).isEmpty();
    refused(
        "workers must be 0 over nccl_kernels, which takes as many as its bytes need, but were 2;"
            + " leave workers(...) out",
        () -> Overlap.pipelined(2).over(Transport.NCCL_KERNELS).workers(2));
  }
}
