package braid.internal.pipeline;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.LocalRanks;
import braid.ProcessGroup;
import braid.internal.backend.Backend;
import braid.internal.context.RankContext;
import braid.internal.resource.BufferRequest;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import braid.internal.resource.SymmetricSource;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.MemoryKind;
import braid.model.Overlap;
import braid.model.Place;
import braid.schedule.Part;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/// Tests the comparison: which values it finds wrong, and its messages.
class ReferenceTest {
  private static final Overlap HOW = Overlap.pipelined(5);

  private record Alone(Place place, String unique) implements Rendezvous {
    @Override
    public List<String> exchange(String label, String value) {
      return List.of(value);
    }
  }

  private record Wrong(long index, float value) {}

  /// A memory source for a single rank.
  private record Memory(Backend backend, AtomicInteger files) implements SymmetricSource {
    @Override
    public void grant(String label, List<BufferRequest> buffers, String remedy) {}

    @Override
    public SymmetricMemory take(String label, long bytes) {
      var alone = new Alone(new Place(0, 1), "reference-test-" + files.getAndIncrement());
      return backend.allocate(MemoryKind.NATIVE, label, bytes, alone);
    }
  }

  private static Rendezvous noRendezvous() {
    throw new IllegalStateException("a plan without a library needs no rendezvous");
  }

  private static Optional<String> compared(
      GemmSpec spec,
      ProcessGroup world,
      @org.jspecify.annotations.Nullable Tolerance tolerance,
      Wrong... wrong) {
    var backend = RankContext.current().backend();
    var memory = new Memory(backend, new AtomicInteger());
    try (var plan =
        Plan.of(
            backend,
            new Place(0, 1),
            List.of(0),
            spec,
            PlanSource.of(HOW),
            Map.of(),
            memory,
            ReferenceTest::noRendezvous)) {
      fill(plan, Part.INPUT, 1);
      fill(plan, Part.WEIGHT, 1);
      fill(plan, Part.OUTPUT, 8);
      for (var each : wrong) {
        DType.FP32.store(plan.view(Part.OUTPUT).orElseThrow().memory(), each.index(), each.value());
      }
      try (var reference =
          Reference.before(
              plan,
              new Peers(world.place(), world::barrier, world::gather, (_, mine) -> List.of(mine)),
              memory)) {
        return reference.compare(tolerance, new Differences());
      }
    }
  }

  private static void fill(Plan plan, Part part, float value) {
    var memory = plan.view(part).orElseThrow().memory();
    for (long i = 0; i < memory.byteSize() / Float.BYTES; i++) {
      DType.FP32.store(memory, i, value);
    }
  }

  @Test
  void anErrorNamesTheFirstWrongValueAndItsChunk() {
    var spec = GemmSpec.allGatherGemm(24, 4, 8);
    LocalRanks.run(
        1,
        world -> {
          assertThat(compared(spec, world, null)).isEmpty();
          // 24 rows in 5 chunks are 5, 5, 5, 5 and 4: row 14 is the last of the third.
          var wrong = new Wrong(14 * 4 + 3, 9);
          assertThat(compared(spec, world, null, wrong))
              .contains(
                  "rank 0: output[14, 3] must be 8.0 exactly but was 9.0; first wrong is chunk 2 from"
                      + " rank 0 of %s, %s".formatted(spec, HOW));
          assertThat(compared(spec, world, new Tolerance(1, 0), wrong)).isEmpty();
          assertThat(compared(spec, world, new Tolerance(1, 0), new Wrong(0, Float.NaN)))
              .hasValueSatisfying(
                  line ->
                      assertThat(line)
                          .contains(
                              "output[0, 0] must be 8.0 within atol=1.00 rtol=0.00 but was NaN"));
        });
  }

  @Test
  void anErrorNamesTheChunkOfASumToo() {
    LocalRanks.run(
        1,
        world -> {
          var wrong = new Wrong(14 * 4 + 3, 9);
          assertThat(
                  compared(GemmSpec.gemmReduceScatter(24, 4, 8), world, null, wrong).orElseThrow())
              .contains("output[14, 3] must be 8.0", "first wrong is chunk 2 of rank 0's rows");
          assertThat(compared(GemmSpec.gemmAllReduce(24, 4, 8), world, null, wrong).orElseThrow())
              .contains("output[14, 3] must be 8.0", "first wrong is chunk 2 of gemm-all-reduce");
          assertThat(
                  compared(GemmSpec.besideAllGather(24, 4, 8, 5), world, new Tolerance(0, 0), wrong)
                      .orElseThrow())
              .contains("output[14, 3] must be 8.0", "first wrong is piece 2");
        });
  }

  @Test
  void aPrivateBufferThatCannotBeAllocatedIsNamed() {
    var spec = GemmSpec.allGatherGemm(1 << 20, 1 << 20, 1 << 20);
    LocalRanks.run(
        1,
        _ -> {
          var backend = RankContext.current().backend();
          var memory = new Memory(backend, new AtomicInteger());
          assertThatThrownBy(
                  () ->
                      Plan.of(
                          backend,
                          new Place(0, 1),
                          List.of(0),
                          spec,
                          PlanSource.of(Overlap.unfused()),
                          Map.of(),
                          memory,
                          ReferenceTest::noRendezvous))
              .isInstanceOf(BraidException.class)
              .hasMessageStartingWith(
                  "%s, %s: private buffer `weight`: 4398046511104 bytes were requested but "
                      .formatted(spec, Overlap.unfused()));
        });
  }
}
