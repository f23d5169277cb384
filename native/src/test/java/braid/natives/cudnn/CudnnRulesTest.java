package braid.natives.cudnn;

import static org.assertj.core.api.Assertions.assertThat;

import braid.natives.cudnn.AttentionProblem.Sequences;
import braid.natives.cudnn.Cudnn.Direction;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CudnnRulesTest {
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      nullValues = "-",
      textBlock =
          """
          2 | 1 | 2 | 1 | 64 | FORWARD  | packed sequences of one row each must have a head of key and value per head but have 1 per 2 heads
          2 | 1 | 2 | 2 | 64 | FORWARD  | -
          2 | 1 | 2 | 1 | 64 | BACKWARD | -
          2 | 2 | 2 | 1 | 64 | FORWARD  | -
          1 | 1 | 2 | 1 | 64 | FORWARD  | -
          2 | 9 | 2 | 2 | 40 | BACKWARD | headSize must be a multiple of 16 for gradients of packed sequences but was 40
          1 | 9 | 2 | 2 | 40 | BACKWARD | -
          2 | 9 | 2 | 2 | 64 | DETERMINISTIC_BACKWARD | gradients of packed sequences are not deterministic
          """)
  void packedSequencesThatCudnnComputesWronglyAreRefused(
      int count,
      int rows,
      int heads,
      int kvHeads,
      int headSize,
      Direction direction,
      String refusal) {
    var sequences = new Sequences(count, count * rows, count * rows, false);
    var problem =
        new AttentionProblem(
            AttentionProblem.Type.BF16,
            heads,
            kvHeads,
            headSize,
            rows,
            rows,
            true,
            0,
            0,
            1,
            sequences,
            AttentionProblem.Strides.NONE);
    assertThat(Cudnn.packedRefusal(problem, direction).orElse(null)).isEqualTo(refusal);
  }

  /// A batch is computed as one sequence is, but for what was not tried.
  @ParameterizedTest
  @CsvSource({
    "1, 1, FORWARD, true",
    "1, 2, FORWARD, false",
    "9, 1, FORWARD, false",
    "9, 1, BACKWARD, false",
    "9, 1, DETERMINISTIC_BACKWARD, false"
  })
  void equalSequencesAreRefusedForOneRowOfGroupedHeadsOnly(
      int rows, int kvHeads, Direction direction, boolean isRefused) {
    var one =
        new AttentionProblem(AttentionProblem.Type.BF16, 2, kvHeads, 40, rows, rows, true, 0, 0, 1);
    assertThat(Cudnn.packedRefusal(one.times(3), direction).isPresent()).isEqualTo(isRefused);
    assertThat(Cudnn.packedRefusal(one, direction)).isEmpty();
  }
}
