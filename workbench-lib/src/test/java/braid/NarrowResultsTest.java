package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.model.VerificationFailed;
import java.util.function.IntToDoubleFunction;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Roundings of results in 16 bits, on numbers that 16 bits cannot hold.
class NarrowResultsTest {
  private static final int M = 16;
  private static final int N = 8;
  private static final int K = 4;

  /// A GELU is of the pre-activation that a backward pass will read, not of the fp32 result.
  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"BF16", "FP16"})
  void aGeluIsOfTheStoredPreActivation(DType dtype) {
    LocalRanks.run(
        1,
        world -> {
          var spec = GemmSpec.allGatherGemm(M, N, K).dtype(dtype).gelu();
          try (var pipe = Pipeline.on(world).gemm(spec).overlap(Overlap.unfused()).build()) {
            fill(pipe);
            pipe.run();
            var sums = products(pipe);
            var output = pipe.output().toFloats();
            int differ = 0;
            for (int i = 0; i < output.length; i++) {
              float kept = dtype.round(sums[i]);
              assertThat(pipe.preActivation().toFloats()[i]).isEqualTo(kept);
              assertThat(output[i]).isEqualTo(dtype.round((float) gelu(kept)));
              differ += output[i] == dtype.round((float) gelu(sums[i])) ? 0 : 1;
            }
            assertThat(differ).as("outputs that an unrounded GELU would change").isPositive();
            pipe.verify();
          }
        });
  }

  /// A GPU's library may round a product before it adds it; the host does not.
  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"BF16", "FP16"})
  void theHostRoundsNoProductBeforeItIsAdded(DType dtype) {
    LocalRanks.run(
        1,
        world -> {
          var spec = GemmSpec.allGatherGemm(M, N, K).dtype(dtype).accumulate();
          try (var pipe = Pipeline.on(world).gemm(spec).overlap(Overlap.unfused()).build()) {
            fill(pipe);
            pipe.output().copyFrom(numbers(M * N, 3));
            var before = pipe.output().toFloats();
            var sums = products(pipe);
            var once = numbers(i -> sums[i] + before[i], dtype);
            var twice = numbers(i -> dtype.round(sums[i]) + before[i], dtype);
            assertThat(twice).isNotEqualTo(once);
            pipe.verify(null, () -> assertThat(pipe.output().toFloats()).containsExactly(once));
            pipe.output().copyFrom(before);
            assertThatThrownBy(() -> pipe.verify(null, () -> pipe.output().copyFrom(twice)))
                .isInstanceOf(VerificationFailed.class);
          }
        });
  }

  private static void fill(Pipeline pipe) {
    pipe.input().copyFrom(numbers(M * K, 1));
    pipe.weight().copyFrom(numbers(K * N, 2));
  }

  /// Returns numbers of few bits, whose products have more than 11.
  private static float[] numbers(int count, int seed) {
    var numbers = new float[count];
    for (int i = 0; i < count; i++) {
      numbers[i] = ((i * 37 + seed * 11) % 127 - 63) / 64f;
    }
    return numbers;
  }

  private static float[] numbers(IntToDoubleFunction number, DType dtype) {
    var numbers = new float[M * N];
    for (int i = 0; i < numbers.length; i++) {
      numbers[i] = dtype.round((float) number.applyAsDouble(i));
    }
    return numbers;
  }

  private static float[] products(Pipeline pipe) {
    var input = pipe.input().toFloats();
    var weight = pipe.weight().toFloats();
    var sums = new float[M * N];
    for (int i = 0; i < sums.length; i++) {
      for (int depth = 0; depth < K; depth++) {
        sums[i] += input[i / N * K + depth] * weight[depth * N + i % N];
      }
    }
    return sums;
  }

  private static double gelu(double x) {
    return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x)));
  }
}
