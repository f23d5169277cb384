package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.GemmSpec;
import braid.model.Overlap;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Chains of pipelines on shared tensors are the backward step of a linear layer: compared with
/// loops over the matrices of all ranks. Integers are small, so sums are exact.
class BackwardChainTest {
  private static final int RANKS = 3;
  private static final int TOKENS = 9 * RANKS;
  private static final int IN = 20;
  private static final int MINE = 7;

  /// a (rows × depth, or stored transposed) · b (depth × columns, or stored transposed).
  private static float[] times(
      float[] a, boolean ta, float[] b, boolean tb, int rows, int depth, int columns) {
    var c = new float[rows * columns];
    for (int i = 0; i < rows; i++) {
      for (int d = 0; d < depth; d++) {
        for (int j = 0; j < columns; j++) {
          c[i * columns + j] +=
              a[ta ? d * rows + i : i * depth + d] * b[tb ? j * depth + d : d * columns + j];
        }
      }
    }
    return c;
  }

  private static float[] joined(List<float[]> parts) {
    int length = parts.getFirst().length;
    var all = new float[length * parts.size()];
    for (int r = 0; r < parts.size(); r++) {
      System.arraycopy(parts.get(r), 0, all, r * length, length);
    }
    return all;
  }

  private static LocalTensor local(ProcessGroup group, long rows, long columns) {
    return LocalTensor.on(group).shape(rows, columns).allocate();
  }

  @Test
  void columnParallelWithTheGatheredInputKept() {
    for (var tuning : List.of(Overlap.unfused(), Overlap.pipelined(3), Overlap.ring())) {
      columnParallel(tuning, false);
    }
  }

  @Test
  void columnParallelWithTheInputGatheredAgain() {
    for (var tuning : List.of(Overlap.unfused(), Overlap.bulk(), Overlap.pipelined(2))) {
      columnParallel(tuning, true);
    }
  }

  private static void columnParallel(Overlap tuning, boolean again) {
    LocalRanks.run(
        RANKS,
        world -> {
          var alone = world.subset("alone-" + world.rank(), world.rank());
          try (var x = SymmetricTensor.on(world).shape(TOKENS / RANKS, IN).allocate();
              var w = local(world, IN, MINE);
              var allX = local(world, TOKENS, IN);
              var dy = local(world, TOKENS, MINE);
              var partial = local(world, TOKENS, IN);
              var dx = local(world, TOKENS / RANKS, IN);
              var dw = local(world, IN, MINE)) {
            x.local().fillIntegers(world.rank());
            w.view().fillIntegers(100 + world.rank());
            dy.view().fillIntegers(200 + world.rank());
            dw.view().fill(1);
            var allOfX = joined(world.gather(x.local()));
            if (!again) {
              allX.view().copyFrom(allOfX);
            }
            world.barrier();
            long elements = (long) TOKENS * IN;
            var dgrad =
                again
                    ? Pipeline.on(world)
                        .gemm(
                            GemmSpec.besideAllGather(TOKENS, IN, MINE, elements).transposedWeight())
                        .input(dy)
                        .weight(w)
                        .output(partial)
                        .besideInput(x)
                        .besideOutput(allX)
                        .overlap(tuning)
                        .build()
                    : Pipeline.on(world)
                        .gemm(
                            GemmSpec.gemmReduceScatter(TOKENS, IN, MINE * RANKS).transposedWeight())
                        .input(dy)
                        .weight(w)
                        .output(dx)
                        .overlap(tuning)
                        .build();
            var wgrad =
                again
                    ? Pipeline.on(world)
                        .gemm(
                            GemmSpec.besideReduceScatter(IN, MINE, TOKENS, elements)
                                .transposedInput()
                                .accumulate())
                        .input(allX)
                        .weight(dy)
                        .output(dw)
                        .besideInput(partial)
                        .besideOutput(dx)
                        .overlap(tuning)
                        .build()
                    : Pipeline.on(alone)
                        .gemm(
                            GemmSpec.gemmReduceScatter(IN, MINE, TOKENS)
                                .transposedInput()
                                .accumulate())
                        .input(allX)
                        .weight(dy)
                        .output(dw)
                        .overlap(Overlap.unfused())
                        .build();
            var step = Chain.on(world).then(dgrad).then(wgrad);
            step.run();
            step.run(); // dW accumulates

            var dys = world.gather(dy.view());
            var ws = world.gather(w.view());
            var sum = new float[TOKENS * IN];
            for (int r = 0; r < RANKS; r++) {
              var product = times(dys.get(r), false, ws.get(r), true, TOKENS, MINE, IN);
              for (int i = 0; i < sum.length; i++) {
                sum[i] += product[i];
              }
            }
            int part = TOKENS / RANKS * IN;
            assertThat(dx.view().toFloats())
                .as("dX, %s", tuning)
                .containsExactly(
                    Arrays.copyOfRange(sum, world.rank() * part, (world.rank() + 1) * part));
            var once = times(allOfX, true, dy.view().toFloats(), false, IN, TOKENS, MINE);
            var expected = new float[once.length];
            for (int i = 0; i < once.length; i++) {
              expected[i] = 1 + 2 * once[i];
            }
            assertThat(dw.view().toFloats()).as("dW, %s", tuning).containsExactly(expected);
            step.pipelines().forEach(Pipeline::close);
          }
        });
  }

  @Test
  void rowParallelHandsOutWhatItGathered() {
    LocalRanks.run(
        RANKS,
        world -> {
          var alone = world.subset("alone-" + world.rank(), world.rank());
          try (var dz = SymmetricTensor.on(world).shape(TOKENS / RANKS, IN).allocate();
              var w = local(world, MINE, IN);
              var y = local(world, TOKENS, MINE);
              var allDz = local(world, TOKENS, IN);
              var dy = local(world, TOKENS, MINE);
              var dw = local(world, MINE, IN);
              var dgrad =
                  Pipeline.on(world)
                      .gemm(
                          GemmSpec.allGatherGemm(TOKENS, MINE * RANKS, IN)
                              .transposedWeight()
                              .gatheredInput())
                      .input(dz)
                      .weight(w)
                      .output(dy)
                      .gatheredInput(allDz)
                      .overlap(Overlap.pipelined(4))
                      .build();
              var wgrad =
                  Pipeline.on(alone)
                      .gemm(GemmSpec.gemmReduceScatter(MINE, IN, TOKENS).transposedInput())
                      .input(y)
                      .weight(allDz)
                      .output(dw)
                      .overlap(Overlap.unfused())
                      .build();
              var step = Chain.on(world).then(dgrad).then(wgrad)) {
            dz.local().fillIntegers(world.rank());
            w.view().fillIntegers(10 + world.rank());
            y.view().fillIntegers(20 + world.rank());
            world.barrier();
            step.run();
            var all = joined(world.gather(dz.local()));
            assertThat(dy.view().toFloats())
                .containsExactly(times(all, false, w.view().toFloats(), true, TOKENS, IN, MINE));
            assertThat(dw.view().toFloats())
                .containsExactly(times(y.view().toFloats(), true, all, false, MINE, TOKENS, IN));
          }
        });
  }
}
