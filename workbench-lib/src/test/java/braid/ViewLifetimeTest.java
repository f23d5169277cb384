package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import braid.model.GemmSpec;
import braid.model.Overlap;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// A view ends with its tensor or pipeline, also if the memory is reused by another.
class ViewLifetimeTest {
  record Problem(GemmSpec spec, List<Function<Pipeline, TensorView>> views) {}

  /// Returns problems that together have every view of a pipeline.
  static List<Problem> problems() {
    return List.of(
        new Problem(
            GemmSpec.allGatherGemm(12, 8, 4).bias().gelu().gatheredInput(),
            List.of(
                Pipeline::input,
                Pipeline::weight,
                Pipeline::bias,
                Pipeline::output,
                Pipeline::preActivation,
                Pipeline::gatheredInput)),
        new Problem(
            GemmSpec.gemmReduceScatter(12, 8, 12), List.of(Pipeline::input, Pipeline::output)),
        new Problem(GemmSpec.gemmAllReduce(12, 8, 12), List.of(Pipeline::weight, Pipeline::output)),
        new Problem(
            GemmSpec.besideAllGather(8, 8, 8, 12),
            List.of(Pipeline::output, Pipeline::besideInput, Pipeline::besideOutput)));
  }

  private static void assertEnded(TensorView view, String message) {
    long[] first = new long[view.shape().size()];
    var values = new float[(int) view.elements()];
    var uses =
        Map.<String, ThrowingCallable>ofEntries(
            Map.entry("get", () -> view.get(first)),
            Map.entry("set", () -> view.set(1, first)),
            Map.entry("fill", () -> view.fill(1)),
            Map.entry("fillIntegers", () -> view.fillIntegers(1)),
            Map.entry("toFloats", view::toFloats),
            Map.entry("segment", view::segment),
            Map.entry("rows", () -> view.rows(0, 1)),
            Map.entry("copyFrom values", () -> view.copyFrom(values)),
            Map.entry("copyFrom itself", () -> view.copyFrom(view)));
    uses.forEach(
        (name, use) ->
            assertThatThrownBy(use)
                .as(name)
                .isInstanceOf(BraidException.class)
                .hasMessageContaining(message));
    assertThat(view.toString()).contains(message);
  }

  @ParameterizedTest
  @MethodSource("problems")
  void aViewOfAClosedPipelineDoesNotReachThePipelineThatReusesItsPlan(Problem problem) {
    LocalRanks.run(
        3,
        world -> {
          var old = new ArrayList<TensorView>();
          var raw = new ArrayList<MemorySegment>();
          var first = Pipeline.on(world).gemm(problem.spec()).build();
          for (var view : problem.views()) {
            var tensor = view.apply(first);
            old.add(tensor);
            old.add(tensor.rows(0, 1));
            raw.add(tensor.segment());
          }
          first.run();
          first.close();
          for (var view : old) {
            assertEnded(view, "is closed; build it again");
          }
          try (var second = Pipeline.on(world).gemm(problem.spec()).build()) {
            assertThat(world.counters()).containsEntry("plans reused", 1L);
            second.run();
            var before =
                problem.views().stream().map(view -> view.apply(second).toFloats()).toList();
            for (var view : old) {
              assertEnded(view, "is closed; build it again");
            }
            for (var segment : raw) {
              assertThatThrownBy(() -> segment.set(ValueLayout.JAVA_BYTE, 0, (byte) 1))
                  .isInstanceOf(IllegalStateException.class);
            }
            for (int i = 0; i < before.size(); i++) {
              assertThat(problem.views().get(i).apply(second).toFloats())
                  .containsExactly(before.get(i));
            }
            second.verify();
          }
        });
  }

  @Test
  void aClosedPipelinesViewOfAnotherRanksOutputEnds() {
    LocalRanks.run(
        2,
        world -> {
          var tuning = Overlap.defaults().outputInSymmetricMemory();
          var spec = GemmSpec.gemmReduceScatter(8, 8, 8);
          var first = Pipeline.on(world).gemm(spec).overlap(tuning).build();
          var peers = first.output(1 - world.rank());
          first.close();
          assertThatThrownBy(() -> first.output(0)).hasMessageContaining("is closed");
          try (var second = Pipeline.on(world).gemm(spec).overlap(tuning).build()) {
            second.run();
            assertEnded(peers, "is closed; build it again");
            assertThat(second.output(world.rank()).toFloats())
                .containsExactly(second.output().toFloats());
          }
        });
  }

  @Test
  void aViewEndsWhereItsPipelineIsClosedWithItsGroup() {
    LocalRanks.run(
        2,
        world -> {
          var pair = world.subset("pair", 0, 1);
          var output = Pipeline.on(pair).gemm(GemmSpec.gemmAllReduce(8, 8, 8)).build().output();
          pair.close();
          assertEnded(output, "is closed; build it again");
        });
  }

  @Test
  void viewsOfACollectivesResultEndWithItAndNotWithItsSuccessor() {
    LocalRanks.run(
        3,
        world -> {
          var comm = Collectives.on(world);
          try (var x = SymmetricTensor.on(world).shape(6).name("x").allocate()) {
            x.local().fill(world.rank() + 1);
            var sum = comm.allReduce(x);
            var views = List.of(sum.local(), sum.on(2), sum.all(), sum.multicast());
            var part = sum.all().rows(1, 2);
            sum.close();
            try (var next = comm.allReduce(x)) {
              assertThat(world.counters()).containsEntry("buffers reused", 1L);
              for (var view : views) {
                assertEnded(view, "symmetric tensor `all-reduce of x` is closed");
              }
              assertEnded(part, "symmetric tensor `all-reduce of x` is closed");
              assertThat(next.local().toFloats()).containsOnly(6);
              world.barrier();
            }
            assertThatThrownBy(() -> comm.broadcast(sum, 0)).hasMessageContaining("is closed");
            assertThatThrownBy(sum::multicast).hasMessageContaining("is closed");
            assertThatThrownBy(sum::all).hasMessageContaining("is closed");
          }
        });
  }

  @Test
  void aViewOfAClosedLocalTensorEnds() {
    LocalRanks.run(
        1,
        world -> {
          var x = LocalTensor.on(world).shape(2, 3).allocate();
          var view = x.view();
          x.close();
          assertEnded(view, "local tensor 2x3 fp32 is closed; allocate it again");
        });
  }
}
