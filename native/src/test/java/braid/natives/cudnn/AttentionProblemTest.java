package braid.natives.cudnn;

import static org.assertj.core.api.Assertions.assertThat;

import org.bytedeco.cuda.global.cudnn;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class AttentionProblemTest {
  private static final int HOPPER = 90;

  private static AttentionProblem problem(int rows, int keys, int shift, int window) {
    return new AttentionProblem(
        AttentionProblem.Type.BF16, 4, 2, 64, rows, keys, true, shift, window, 0.125f);
  }

  private static AttentionProblem ofHeadSize(int headSize) {
    return new AttentionProblem(AttentionProblem.Type.FP16, 4, 2, headSize, 64, 64, false, 0, 0, 1);
  }

  @ParameterizedTest
  @CsvSource({
    "128, 90, true",
    "256, 90, true",
    "264, 90, false",
    "128, 80, true",
    "136, 80, false",
    "136, 100, false",
    "8, 90, true",
    "0, 90, false",
    "100, 90, false",
    "128, 75, false"
  })
  void headSizesAreThoseOfTheArchitecture(int headSize, int architecture, boolean works) {
    assertThat(ofHeadSize(headSize).refusal(architecture).isEmpty()).isEqualTo(works);
  }

  @Test
  void aRefusalNamesRuleAndValue() {
    assertThat(ofHeadSize(100).refusal(HOPPER))
        .contains("headSize must be a multiple of 8 up to 256 but was 100");
    assertThat(ofHeadSize(64).refusal(75)).contains("it needs compute capability 8.0, found 7.5");
    assertThat(problem(64, 64, -1, 0).refusal(HOPPER))
        .contains("shift -1 and window 0 must be at least 0, and a window needs a causal mask");
    assertThat(problem(0, 64, 0, 0).refusal(HOPPER))
        .contains("0 rows and 64 keys must be at least 1 each");
  }

  private static AttentionProblem packed(int shift) {
    return new AttentionProblem(
        AttentionProblem.Type.BF16,
        4,
        2,
        64,
        30,
        20,
        true,
        shift,
        0,
        1,
        new AttentionProblem.Sequences(3, 70, 50, false),
        AttentionProblem.Strides.NONE);
  }

  @Test
  void packedSequencesNeedHopperAndNoShift() {
    assertThat(packed(0).refusal(HOPPER)).isEmpty();
    assertThat(packed(0).refusal(89))
        .contains("packed sequences were tried on compute capability 9.0 only, found 8.9");
    assertThat(packed(0).refusal(100))
        .contains("packed sequences were tried on compute capability 9.0 only, found 10.0");
    assertThat(packed(1).refusal(HOPPER))
        .contains("shift must be 0 for packed sequences but was 1");
    assertThat(packed(0))
        .hasToString(
            "attention of 3 sequences of up to 30 rows to 20 keys in BF16, 4 heads of 64, 2 of key and value, causal from key 0");
  }

  /// Compares with the rows that a plain loop finds to see a key.
  @Test
  void aRowWithoutKeysIsRefused() {
    for (int rows : new int[] {1, 3, 8}) {
      for (int keys : new int[] {1, 3, 8}) {
        for (int shift = 0; shift < 12; shift++) {
          for (int window = 0; window < 10; window++) {
            var problem = problem(rows, keys, shift, window);
            assertThat(problem.refusal(HOPPER).isPresent())
                .as(problem.toString())
                .isEqualTo(hasEmptyRow(problem));
          }
        }
      }
    }
  }

  private static boolean hasEmptyRow(AttentionProblem problem) {
    for (int row = 0; row < problem.rows(); row++) {
      int seen = 0;
      for (int key = 0; key < problem.keys(); key++) {
        seen += sees(problem, row, key) ? 1 : 0;
      }
      if (seen == 0) {
        return true;
      }
    }
    return false;
  }

  private static boolean sees(AttentionProblem problem, int row, int key) {
    int position = row + problem.shift();
    return key <= position && (problem.window() == 0 || key > position - problem.window());
  }

  @Test
  void aMaskIsLeftOutIfItHidesNothing() {
    assertThat(problem(8, 8, 0, 0).masks()).isTrue();
    assertThat(problem(8, 8, 6, 0).masks()).isTrue();
    assertThat(problem(8, 8, 7, 0).masks()).isFalse();
    assertThat(problem(8, 8, 7, 8).masks()).isTrue();
    assertThat(ofHeadSize(64).masks()).isFalse();
  }

  @Test
  void onlyAnUnsupportedProblemIsRefused() {
    assertThat(Cudnn.isRefusal(cudnn.CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN)).isTrue();
    assertThat(Cudnn.isRefusal(cudnn.CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH)).isTrue();
    assertThat(Cudnn.isRefusal(cudnn.CUDNN_STATUS_INTERNAL_ERROR)).isFalse();
    assertThat(Cudnn.isRefusal(cudnn.CUDNN_STATUS_EXECUTION_FAILED)).isFalse();
    assertThat(Cudnn.isRefusal(cudnn.CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED)).isFalse();
  }
}
