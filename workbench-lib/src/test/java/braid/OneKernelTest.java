package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.ChunkOrder;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Link;
import braid.model.Overlap;
import braid.model.Transport;
import braid.model.Tuning;
import braid.schedule.Step;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Small messages, whose copies and sums are one kernel with the signals around them.
final class OneKernelTest {
  private static final int REPEATS = 100;
  private static final Overlap DIRECT = Overlap.direct().over(Transport.ONE_KERNEL);
  private static final Overlap UNFUSED = Overlap.unfused().over(Transport.ONE_KERNEL);

  /// Real numbers, whose sum depends on the order of its parts.
  @ParameterizedTest
  @ValueSource(ints = {2, 3, 4})
  void allRanksGetTheSameBitsEveryTime(int ranks) {
    LocalRanks.run(
        ranks,
        world -> {
          for (var dtype : List.of(DType.FP32, DType.BF16)) {
            var spec = GemmSpec.gemmAllReduce(7, 11, 16 * ranks + 1).dtype(dtype);
            double[] ofAll = {};
            for (var overlap : List.of(DIRECT, DIRECT.replay(), UNFUSED, UNFUSED.replay())) {
              try (var pipe = Pipeline.on(world).gemm(spec).overlap(overlap).build()) {
                var random = new Random(world.rank());
                fill(pipe.input(), random);
                fill(pipe.weight(), random);
                pipe.run();
                var first = world.gather(sum(pipe.output().toFloats()));
                for (int repeat = 0; repeat < REPEATS; repeat++) {
                  pipe.run();
                  assertThat(world.gather(sum(pipe.output().toFloats()))).isEqualTo(first);
                }
                assertThat(first).containsOnly(first[0]);
                assertThat(first).isEqualTo(ofAll.length == 0 ? first : ofAll);
                ofAll = first;
              }
            }
          }
        });
  }

  private static void fill(TensorView tensor, Random random) {
    var values = new float[Math.toIntExact(tensor.elements())];
    for (int i = 0; i < values.length; i++) {
      values[i] = (float) random.nextGaussian();
    }
    tensor.copyFrom(values);
  }

  /// Returns a number that differs if a bit does, most likely.
  private static double sum(float[] values) {
    long sum = 0;
    for (float value : values) {
      sum = 31 * sum + Float.floatToRawIntBits(value);
    }
    return sum;
  }

  @Test
  void aSumTakesTheTimeOfTheLinkThatItReadsOver() {
    LocalRanks.run(
        3,
        world -> {
          var link = Link.parse("2MB/s");
          world.playLink(link);
          try (var pipe =
              Pipeline.on(world).gemm(GemmSpec.gemmAllReduce(32, 32, 8)).overlap(DIRECT).build()) {
            long bytes = 2L * 32 * 32 * Float.BYTES;
            for (long nanos : pipe.time(3)) {
              assertThat(nanos).isGreaterThanOrEqualTo(link.nanos(bytes));
            }
          }
        });
  }

  @Test
  void anUnfusedSumIsPassedOnByItsOwnLane() {
    LocalRanks.run(
        3,
        world -> {
          for (int rows : List.of(1, 2, 9)) {
            var spec = GemmSpec.gemmAllReduce(rows, 5, 7);
            try (var pipe = Pipeline.on(world).gemm(spec).overlap(UNFUSED).build()) {
              pipe.verify();
              assertThat(pipe.schedule().lanes()).hasSize(1);
              assertThat(pipe.schedule().steps(0).stream().filter(Step.Copy.class::isInstance))
                  .hasSizeBetween(rows < 3 ? 0 : 1, 1);
            }
            try (var pipe = Pipeline.on(world).gemm(spec.bias()).overlap(UNFUSED).build()) {
              pipe.verify();
              assertThat(pipe.schedule().lanes().size()).isGreaterThan(1);
            }
          }
        });
  }

  @Test
  void aSumCopiesNothing() {
    LocalRanks.run(
        2,
        world -> {
          for (var spec :
              List.of(GemmSpec.gemmAllReduce(9, 5, 7), GemmSpec.gemmReduceScatter(9, 5, 7))) {
            try (var pipe = Pipeline.on(world).gemm(spec).overlap(DIRECT).build()) {
              pipe.verify();
              assertThat(pipe.schedule().lanes()).hasSize(1);
              assertThat(pipe.schedule().buffers().stream().map(Object::toString))
                  .doesNotContain("inbox");
            }
          }
        });
  }

  @Test
  void optionsWithoutEffectAreRefused() {
    assertThatThrownBy(() -> DIRECT.workers(2))
        .hasMessage(
            "workers must be 0 over one_kernel, which takes as many as its bytes need, but were 2; leave workers(...) out");
    assertThatThrownBy(() -> DIRECT.streams(3))
        .hasMessage(
            "streams over one_kernel must be 1..2, since kernels that wait for peers occupy compute units, but were 3; try streams(2)");
    assertThatThrownBy(
            () -> DIRECT.order(ChunkOrder.PREVIOUS_FIRST).check(GemmSpec.gemmAllReduce(8, 8, 8), 2))
        .hasMessage(
            "sums over one_kernel read all peers at once, in no order, but it was previous_first; leave order(...) out");
    DIRECT.order(ChunkOrder.PREVIOUS_FIRST).check(GemmSpec.allGatherGemm(8, 8, 8), 2);
  }

  @Test
  void aSearchTriesItForSmallMessagesOnly() {
    LocalRanks.run(
        2,
        world -> {
          var expected = List.<Tuning>of(UNFUSED, UNFUSED.replay(), DIRECT, DIRECT.replay());
          var rows = (int) (Grid.MOST_IN_ONE_KERNEL_BYTES / (8192L * DType.BF16.bytes()));
          var largest = GemmSpec.gemmAllReduce(rows, 8192, 8).dtype(DType.BF16);
          assertThat(inOneKernel(world, largest)).containsExactlyInAnyOrderElementsOf(expected);
          assertThat(inOneKernel(world, largest.bias())).containsExactly(DIRECT, DIRECT.replay());
          assertThat(
                  inOneKernel(world, GemmSpec.gemmAllReduce(rows + 1, 8192, 8).dtype(DType.BF16)))
              .isEmpty();
          assertThat(inOneKernel(world, GemmSpec.allGatherGemm(64, 64, 64)))
              .extracting(tuning -> ((Overlap) tuning).method().toString())
              .containsOnly("unfused");
          assertThat(inOneKernel(world, GemmSpec.besideAllGather(8, 8, 8, 64))).isEmpty();
        });
  }

  private static List<Tuning> inOneKernel(ProcessGroup world, GemmSpec spec) {
    var grid = new Grid(world, null);
    grid.whole();
    return grid.all(spec).stream()
        .filter(tuning -> tuning.transport() == Transport.ONE_KERNEL)
        .toList();
  }
}
