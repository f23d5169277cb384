package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.AttentionSpec;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Verification;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Verifications that find no wrong value, and their reports.
class VerificationTest {
  private interface Verified {
    Verification on(ProcessGroup world);
  }

  private static Verification verified(Verified body) {
    List<Verification> results = Collections.synchronizedList(new ArrayList<>());
    LocalRanks.run(2, world -> results.add(body.on(world)));
    assertThat(results).hasSize(2);
    assertThat(results.getFirst()).isEqualTo(results.getLast());
    return results.getFirst();
  }

  @Test
  void integersAreComparedExactly() {
    var result =
        verified(
            world -> Pipeline.on(world).gemm(GemmSpec.allGatherGemm(16, 8, 8)).build().verify());
    assertThat(result).isEqualTo(new Verification(16 * 8, 16 * 8, 0, 0, 2));
    assertThat(result)
        .hasToString("verified 128 values of 2 ranks: each equals the reference exactly");
  }

  @Test
  void realNumbersHaveTheirLargestDifferenceAndItsBound() {
    var result =
        verified(
            world -> {
              var pipe = Pipeline.on(world).gemm(GemmSpec.allGatherGemm(16, 8, 64)).build();
              fill(pipe.input(), world.rank());
              fill(pipe.weight(), 7);
              return pipe.verify();
            });
    assertThat(result.values()).isEqualTo(16 * 8);
    assertThat(result.exact()).isZero();
    assertThat(result.largestDifference()).isBetween(0.0, result.allowedDifference());
    assertThat(result.allowedDifference()).isPositive();
  }

  private static void fill(TensorView tensor, int seed) {
    var numbers = tensor.toFloats();
    var random = new java.util.Random(seed);
    for (int i = 0; i < numbers.length; i++) {
      numbers[i] = random.nextFloat() - 0.5f;
    }
    tensor.copyFrom(numbers);
  }

  @Test
  void aToleranceIsTheBound() {
    var result =
        verified(
            world ->
                Pipeline.on(world)
                    .gemm(GemmSpec.gemmReduceScatter(16, 8, 8))
                    .build()
                    .verify(0.5, 0));
    assertThat(result).isEqualTo(new Verification(16 * 8, 0, 0, 0.5, 2));
    assertThat(result)
        .hasToString(
            "verified 128 values of 2 ranks: the largest difference is 0.00, where 0.500 is"
                + " allowed");
  }

  /// 16 tokens with 2 heads of 8 numbers, and an LSE per token and head.
  @Test
  void attentionAndItsGradientsCountTheirValues() {
    var spec = AttentionSpec.of(16, 2, 8).dtype(DType.FP32);
    var result =
        verified(
            world -> {
              var forward = Pipeline.on(world).attention(spec).build();
              var attention = forward.verify();
              assertThat(attention.values()).isEqualTo(16 * 2 * 8 + 16 * 2);
              assertThat(attention.largestDifference())
                  .isBetween(0.0, attention.allowedDifference());
              return Pipeline.on(world).backward(forward).build().verify();
            });
    assertThat(result.values()).isEqualTo(3 * 16 * 2 * 8);
    assertThat(result.largestDifference()).isBetween(0.0, result.allowedDifference());
  }
}
