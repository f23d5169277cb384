package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.MemoryKind;
import braid.model.Overlap;
import braid.model.Stage;
import braid.model.TokenLayout;
import braid.model.Transport;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/// Lessons of attention over symmetric memory that apply to other operations: each test is named
/// after its row of docs/capabilities.md. Isolated, because it counts this process's threads by
/// name.
@Isolated
class SeedsBTest {
  /// The backward pass fetches the keys again, so it needs nothing of the forward pass but its
  /// tensors; it names them, and refuses to run when they have ended.
  @Test
  void b2TheBackwardPassFetchesAgainAndReturnsGradients() {
    LocalRanks.run(
        3,
        world -> {
          var spec = AttentionSpec.of(24, 4, 8).kvHeads(2);
          var attention = Pipeline.on(world).attention(spec).build();
          try (var backward = Pipeline.on(world).backward(attention).build()) {
            attention.run();
            backward.verify();
            var copied =
                backward.profile(1).spans().stream()
                    .filter(span -> span.stage() == Stage.COPY)
                    .mapToLong(span -> span.bytes())
                    .sum();
            // Keys and values of two ranks arrive, and gradients of as many leave.
            assertThat(copied).isEqualTo(2 * 2 * 2 * 8 * 2 * 8 * Float.BYTES);
            attention.close();
            assertThatThrownBy(backward::run)
                .isInstanceOf(BraidException.class)
                .hasMessageContaining("attention sequence=24")
                .hasMessageContaining("is closed; build it again");
          }
        });
  }

  /// Direct reads and the ring produce the same numbers, and neither silently replaces the other.
  @Test
  void b4TwoWaysToExchangeComeToTheSameResult() {
    LocalRanks.run(
        3,
        world -> {
          var spec = GemmSpec.allGatherGemm(23, 13, 7);
          var outputs = new ArrayList<float[]>();
          for (var tuning : new Overlap[] {Overlap.direct(), Overlap.ring()}) {
            try (var pipe = Pipeline.on(world).gemm(spec).overlap(tuning).build()) {
              assertThat(pipe.profile(1).configuration())
                  .containsEntry("method", tuning.method().toString());
              outputs.add(pipe.output().toFloats());
            }
          }
          assertThat(outputs.getFirst()).containsExactly(outputs.getLast());
        });
  }

  /// A ring reads from owners or forwards from neighbor to neighbor. It attends to the same blocks
  /// in the same order, so the numbers are equal to the last bit; gradients of keys are added in
  /// another order.
  @Test
  void b4TwoWaysToExchangeKeysComeToTheSameResult() {
    LocalRanks.run(
        4,
        world -> {
          var spec = AttentionSpec.of(61, 4, 8).kvHeads(2).causal().layout(TokenLayout.ZIGZAG);
          var results = new ArrayList<List<float[]>>();
          for (var tuning :
              List.of(ContextParallel.ring(), ContextParallel.ring().neighborToNeighbor())) {
            try (var attention = Pipeline.on(world).attention(spec).overlap(tuning).build();
                var backward = Pipeline.on(world).overlap(tuning).backward(attention).build()) {
              assertThat(attention.profile(1).configuration().get("exchange"))
                  .isEqualTo(tuning.neighborsOnly() ? "neighbor to neighbor" : null);
              backward.verify();
              results.add(
                  List.of(
                      attention.output().toFloats(),
                      attention.lse().toFloats(),
                      backward.queryGradient().toFloats()));
            }
          }
          for (int i = 0; i < 3; i++) {
            assertThat(results.getFirst().get(i)).containsExactly(results.getLast().get(i));
          }
        });
  }

  @Test
  void b5WhatIsSetUpOnceIsNotSetUpAgain() {
    LocalRanks.run(
        2,
        world -> {
          var spec = GemmSpec.allGatherGemm(8, 4, 4);
          Pipeline.on(world).gemm(spec).build().close();
          var before = world.counters().get("rendezvous");
          for (int pass = 0; pass < 3; pass++) {
            assertThat(ProcessGroup.world()).isSameAs(world);
            try (var pipe = Pipeline.on(world).gemm(spec).build()) {
              pipe.run();
              pipe.run();
            }
          }
          assertThat(world.counters().get("rendezvous")).isEqualTo(before);
        });
  }

  /// Passes set up nothing. Pipeline that is built again takes its memory and signals from the
  /// pool, without a meeting; only the backward pass makes its plan again, for the tensors of its
  /// forward pass.
  @Test
  void b5AttentionIsSetUpOnceForAllPasses() {
    LocalRanks.run(
        4,
        world -> {
          var spec = AttentionSpec.of(24, 4, 8).causal();
          for (var tuning :
              List.of(
                  ContextParallel.ring(),
                  ContextParallel.allGatherKv(),
                  ContextParallel.ulysses(),
                  ContextParallel.twoLevel(2))) {
            try (var attention = Pipeline.on(world).attention(spec).overlap(tuning).build();
                var backward = Pipeline.on(world).overlap(tuning).backward(attention).build()) {
              forwardAndBackward(attention, backward);
              assertThat(world.counters(() -> forwardAndBackward(attention, backward)))
                  .as("%s, second pass", tuning)
                  .isEmpty();
            }
            assertThat(
                    world.counters(
                        () -> {
                          try (var attention =
                                  Pipeline.on(world).attention(spec).overlap(tuning).build();
                              var backward =
                                  Pipeline.on(world).overlap(tuning).backward(attention).build()) {
                            forwardAndBackward(attention, backward);
                          }
                        }))
                .as("%s, built again", tuning)
                .containsEntry("plans reused", 1L)
                .doesNotContainKeys("meetings", "rendezvous", "buffers allocated");
          }
        });
  }

  private static void forwardAndBackward(Pipeline attention, Pipeline backward) {
    attention.run();
    backward.run();
  }

  @Test
  void b6AFailedAllocationSaysHowMuchWasAskedForAndIsLeft() {
    LocalRanks.run(
        2,
        world ->
            assertThatThrownBy(
                    () -> SymmetricTensor.on(world).name("heap").shape(1L << 50).allocate())
                .isInstanceOf(BraidException.class)
                .hasMessageContaining("needs 4503599627370496 bytes per rank")
                .hasMessageMatching("(?s).*where \\d+ are free.*"));
  }

  @Test
  void b7ARefusalNamesWhatWasAskedForAndWhatIsMissing() {
    LocalRanks.run(
        1,
        world -> {
          for (var kind : new MemoryKind[] {MemoryKind.IPC, MemoryKind.NCCL, MemoryKind.NVSHMEM}) {
            assertThatThrownBy(
                    () ->
                        Pipeline.on(world)
                            .gemm(GemmSpec.allGatherGemm(4, 4, 4))
                            .memory(kind)
                            .build())
                .hasMessage(
                    "memory kind %s needs CUDA but the backend is host; use native or auto"
                        .formatted(kind));
          }
        });
  }

  @Test
  void b8BiasIsAddedAndGeluKeepsWhatItIsOf() {
    LocalRanks.run(
        2,
        world -> {
          for (var spec :
              new GemmSpec[] {
                GemmSpec.allGatherGemm(4, 4, 2),
                GemmSpec.gemmReduceScatter(4, 4, 2),
                GemmSpec.gemmAllReduce(4, 4, 2)
              }) {
            try (var pipe = Pipeline.on(world).gemm(spec.bias().gelu()).build()) {
              pipe.input().fill(1);
              pipe.weight().fill(-1);
              pipe.bias().fill(1);
              pipe.run();
              assertThat(pipe.preActivation().toFloats()).as(spec.toString()).containsOnly(-1);
              // GELU of -1, in its tanh form.
              assertThat(pipe.output().toFloats()).as(spec.toString()).containsOnly(-0.15880801f);
            }
          }
        });
  }

  @Test
  void b8AnAccumulatingRunAddsToWhatIsThere() {
    LocalRanks.run(
        2,
        world -> {
          try (var pipe =
              Pipeline.on(world).gemm(GemmSpec.gemmReduceScatter(4, 4, 2).accumulate()).build()) {
            pipe.input().fill(1);
            pipe.weight().fill(1);
            pipe.output().fill(10);
            pipe.run();
            pipe.run();
            assertThat(pipe.output().toFloats()).containsOnly(14);
          }
        });
  }

  @Test
  void b8WhatIsStoredTransposedIsMultipliedAsItIsMeant() {
    LocalRanks.run(
        1,
        world -> {
          var spec = GemmSpec.gemmReduceScatter(2, 2, 3).transposedInput().transposedWeight();
          try (var pipe = Pipeline.on(world).gemm(spec).build()) {
            assertThat(pipe.input().shape()).containsExactly(3L, 2L);
            assertThat(pipe.weight().shape()).containsExactly(2L, 3L);
            pipe.input().copyFrom(1, 4, 2, 5, 3, 6);
            pipe.weight().copyFrom(1, 0, 1, 0, 1, 1);
            pipe.run();
            assertThat(pipe.output().toFloats()).containsExactly(4, 5, 10, 11);
          }
        });
  }

  @Test
  void b8SoManyWorkersCommunicateAsWereAskedFor() {
    LocalRanks.run(
        2,
        world -> {
          var tuning = Overlap.pipelined(2).over(Transport.WORKERS).workers(3);
          try (var pipe =
              Pipeline.on(world).gemm(GemmSpec.allGatherGemm(24, 4, 8)).overlap(tuning).build()) {
            pipe.verify();
            var threads =
                Thread.getAllStackTraces().keySet().stream()
                    .map(Thread::getName)
                    .filter(name -> name.startsWith("braid-%d-comm".formatted(world.rank())))
                    .toList();
            assertThat(threads).hasSize(3);
          }
        });
  }

  @Test
  void b8Fp8HasScalesAndAnAmaxOfAllRanks() {
    LocalRanks.run(
        2,
        world -> {
          var spec = GemmSpec.allGatherGemm(4, 4, 2).dtype(DType.FP8_E4M3);
          try (var pipe = Pipeline.on(world).gemm(spec).scales(0.5f, 0.25f).build()) {
            pipe.input().fill(4);
            pipe.weight().fill(world.rank() == 0 ? 2 : -8);
            pipe.run();
            assertThat(pipe.output().dtype()).isEqualTo(GemmSpec.DEFAULT_FP8_OUTPUT);
            assertThat(pipe.output().toFloats()).containsOnly(world.rank() == 0 ? 2 : -8);
            assertThat(pipe.amax()).isEqualTo(8);
          }
        });
  }

  /// Every number of the type survives a round trip, and numbers between two of them are rounded to
  /// the nearest.
  @Test
  void b8Fp8KeepsWhatItCanAndSaturates() {
    for (var type : new DType[] {DType.FP8_E4M3, DType.FP8_E5M2}) {
      float largest = type == DType.FP8_E4M3 ? 448 : 57344;
      assertThat(type.round(Float.POSITIVE_INFINITY)).isEqualTo(largest);
      assertThat(type.round(-2 * largest)).isEqualTo(-largest);
      assertThat(type.round(Float.NaN)).isNaN();
      int exact = (int) (2 / type.epsilon());
      IntStream.rangeClosed(-exact, exact)
          .forEach(i -> assertThat(type.round(i)).isEqualTo((float) i));
      // Ties go to the even neighbor.
      assertThat(type.round(exact + 1)).isEqualTo((float) exact);
      assertThat(type.round(exact + 3)).isEqualTo((float) (exact + 4));
    }
    // The smallest of each, and half of it.
    assertThat(DType.FP8_E4M3.round(0x1p-9f)).isEqualTo(0x1p-9f);
    assertThat(DType.FP8_E4M3.round(0x1p-10f)).isEqualTo(0);
    assertThat(DType.FP8_E5M2.round(0x1p-16f)).isEqualTo(0x1p-16f);
    assertThat(DType.FP8_E5M2.round(0x1.8p-17f)).isEqualTo(0x1p-16f);
    assertThat(DType.FP8_E4M3.round(0x1.fp-7f)).isEqualTo(0x1p-6f);
  }
}
