package braid.internal.selftest;

import static org.assertj.core.api.Assertions.assertThat;

import braid.Capabilities;
import braid.LocalRanks;
import braid.Pipeline;
import braid.ProcessGroup;
import braid.TensorView;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.GemmSpec.Pattern;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Transport;
import braid.natives.kernels.Integers;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/// Every method and transport, compared to the bit with plain loops on numbers that 16 bits cannot
/// hold: sent parts are rounded, sums are, and so are outputs. Ranks' outputs differ before a run.
class SumsTest {
  private static final int M = 24;
  private static final int N = 16;

  /// Depth at which fp32 holds the sum of products exactly: the order of the multiplication does
  /// not matter.
  private static final int K = 12;

  private static final int RUNS = 2;

  private static final List<EnumSet<Feature>> FEATURES =
      List.of(
          EnumSet.noneOf(Feature.class),
          EnumSet.of(Feature.ACCUMULATE),
          EnumSet.of(Feature.BIAS),
          EnumSet.of(Feature.ACCUMULATE, Feature.BIAS),
          EnumSet.of(Feature.GELU),
          EnumSet.of(Feature.BIAS, Feature.GELU));

  @ParameterizedTest
  @CsvSource({
    "1, GEMM_ALL_REDUCE",
    "2, GEMM_ALL_REDUCE",
    "3, GEMM_ALL_REDUCE",
    "4, GEMM_ALL_REDUCE",
    "1, GEMM_REDUCE_SCATTER",
    "2, GEMM_REDUCE_SCATTER",
    "3, GEMM_REDUCE_SCATTER",
    "4, GEMM_REDUCE_SCATTER",
    "6, GEMM_REDUCE_SCATTER",
    "2, ALL_GATHER_GEMM",
    "2, GEMM_BESIDE_REDUCE_SCATTER"
  })
  void everyMethodRoundsWhereTheOthersDo(int ranks, Pattern pattern) {
    LocalRanks.run(
        ranks,
        world -> {
          var wrong = new ArrayList<String>();
          for (var dtype : List.of(DType.FP32, DType.BF16, DType.FP16)) {
            for (var features : Sweep.oneOf(2, FEATURES)) {
              var spec =
                  PipelineCases.with(
                      PipelineCases.spec(pattern, M, N, K, 50).dtype(dtype), features);
              for (var tuning : ways(spec, ranks)) {
                hold(world, spec, tuning, wrong);
              }
            }
          }
          assertThat(world.gather(String.join("\n", wrong))).containsOnly("");
        });
  }

  /// Plain rounding saturates at the published largest numbers of a type, like the type itself.
  @ParameterizedTest
  @EnumSource(DType.class)
  void plainRoundingKnowsTheLargestNumbers(DType type) {
    for (float value : new float[] {1, 448, 464, 480, 512, 57344, 61440, 65504, 65536, 1e6f}) {
      assertThat(PlainCase.rounded(type, value)).isEqualTo(type.round(value));
      assertThat(PlainCase.rounded(type, -value)).isEqualTo(type.round(-value));
    }
    assertThat(PlainCase.rounded(DType.FP8_E4M3, 1e6f)).isEqualTo(448);
    assertThat(PlainCase.rounded(DType.FP8_E5M2, 1e6f)).isEqualTo(57344);
    assertThat(PlainCase.rounded(DType.FP16, 1e6f)).isInfinite();
  }

  @Test
  void aProductIsAddedToTheOutputAsAWhole() {
    int k = 2048;
    LocalRanks.run(
        1,
        world -> {
          var spec = GemmSpec.allGatherGemm(M, N, k).accumulate();
          try (var pipe = Pipeline.on(world).gemm(spec).overlap(Overlap.unfused()).build()) {
            var before = given(PlainCase.Operand.OUTPUT, 0, M * N);
            for (int i = 0; i < before.length; i++) {
              before[i] /= 3;
            }
            pipe.output().copyFrom(before);
            var input = pipe.input().toFloats();
            var weight = pipe.weight().toFloats();
            pipe.run();
            var expected = new float[M * N];
            for (int i = 0; i < expected.length; i++) {
              int sum = 0;
              for (int depth = 0; depth < k; depth++) {
                sum += (int) (input[i / N * k + depth] * weight[depth * N + i % N]);
              }
              expected[i] = sum + before[i];
            }
            assertThat(pipe.output().toFloats()).containsExactly(expected);
            pipe.verify();
          }
        });
  }

  private static List<Overlap> ways(GemmSpec spec, int ranks) {
    var ways = new ArrayList<Overlap>();
    for (var row : Capabilities.host()) {
      if (row.supported() && row.pattern() == spec.pattern()) {
        int splits = Math.min(3, PipelineCases.mostSplits(spec, row.method(), ranks));
        var tuning = PipelineCases.tuning(row.method(), splits, ranks);
        ways.add(tuning.over(row.transport()));
        boolean isThereAlready =
            spec.pattern() == GemmSpec.Pattern.GEMM_ALL_REDUCE && row.method() == Method.UNFUSED;
        if (row.transport() == Transport.COPY_ENGINE && !isThereAlready) {
          ways.add(tuning.replay().outputInSymmetricMemory());
        }
      }
    }
    return ways;
  }

  private static void hold(ProcessGroup world, GemmSpec spec, Overlap tuning, List<String> wrong) {
    try (var pipe = Pipeline.on(world).gemm(spec).overlap(tuning).build()) {
      fill(pipe.input(), PlainCase.Operand.INPUT);
      fill(pipe.weight(), PlainCase.Operand.WEIGHT);
      if (spec.has(Feature.BIAS)) {
        fill(pipe.bias(), PlainCase.Operand.BIAS);
      }
      fill(pipe.output(), PlainCase.Operand.OUTPUT);
      var type = spec.outputDtype();
      var before = pipe.output().toFloats();
      for (int run = 1; run <= RUNS; run++) {
        var start = before;
        var plain =
            new PlainCase(
                spec,
                tuning,
                world.place(),
                operand ->
                    rank ->
                        size ->
                            operand == PlainCase.Operand.OUTPUT
                                ? start
                                : given(operand, rank, size));
        pipe.run();
        var name = "%s, %s, rank %s, run %d".formatted(spec, tuning, world.place(), run);
        var output = pipe.output().toFloats();
        before = PlainCase.rounded(type, plain.activated());
        compare(name + ", output", before, output, wrong);
        if (spec.has(Feature.GELU)) {
          compare(
              name + ", pre-activation",
              PlainCase.rounded(type, plain.output()),
              pipe.preActivation().toFloats(),
              wrong);
        }
      }
      pipe.verify(0, 0);
    }
  }

  private static void compare(String name, float[] wanted, float[] got, List<String> wrong) {
    int differ = 0;
    for (int i = 0; i < wanted.length; i++) {
      differ += wanted[i] == got[i] ? 0 : 1;
    }
    if (differ > 0) {
      wrong.add("%s: %d of %d differ".formatted(name, differ, wanted.length));
    }
  }

  private static void fill(TensorView tensor, PlainCase.Operand operand) {
    int rank = ProcessGroup.world().rank();
    var _ = tensor.copyFrom(given(operand, rank, Math.toIntExact(tensor.elements())));
  }

  /// Returns numbers of 5 bits, the lowest worth 1/64: every type here holds them, but not their
  /// products.
  private static float[] given(PlainCase.Operand operand, int rank, int size) {
    long seed = operand == PlainCase.Operand.BIAS ? operand.seed() : 100L * rank + operand.seed();
    var high = Integers.first(seed, size);
    var low = Integers.first(seed + 50, size);
    for (int i = 0; i < size; i++) {
      high[i] = (8 * high[i] + low[i]) / 64;
    }
    return high;
  }
}
