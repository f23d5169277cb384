package braid.internal.pipeline;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.host.HostAccess;
import braid.internal.resource.Range;
import braid.internal.work.Matrix;
import braid.internal.work.Precision;
import braid.model.BraidException;
import braid.model.DType;
import braid.schedule.Slice;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.function.IntToDoubleFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Slices, clocks and tolerances.
class PartsTest {
  @ParameterizedTest
  @CsvSource({"10, 3, '0+4 4+3 7+3'", "2, 2, '0+1 1+1'", "7, 1, '0+7'", "5, 4, '0+2 2+1 3+1 4+1'"})
  void slicesAreBalancedAndCoverEverything(int total, int parts, String expected) {
    var text = new StringBuilder();
    for (int i = 0; i < parts; i++) {
      var slice = Slice.of(total, parts, i);
      text.append(i == 0 ? "" : " ").append(slice.start()).append('+').append(slice.length());
    }
    assertThat(text).hasToString(expected);
  }

  @Test
  void aPartThatDoesNotExistIsRefused() {
    assertThatThrownBy(() -> new Slice(0, 10).part(3, 3))
        .hasMessage("the index of one of 3 parts must be 0..2 but was 3; count parts from 0");
    assertThatThrownBy(() -> Slice.of(10, 3, -1)).isInstanceOf(BraidException.class);
  }

  @Test
  void aClockThatMayBeTheSameIsTakenForIt() {
    assertThat(ClockAlignment.of(false, -300, 100)).isEqualTo(new ClockAlignment(0, 300));
    assertThat(ClockAlignment.of(false, 1000, 1400)).isEqualTo(new ClockAlignment(1200, 200));
    assertThat(ClockAlignment.of(false, -1401, -1000)).isEqualTo(new ClockAlignment(-1201, 201));
    assertThat(ClockAlignment.of(true, -300, 100)).isEqualTo(new ClockAlignment(0, 0));
    // A shared identity that the measurement contradicts is ignored.
    assertThat(ClockAlignment.of(true, 1000, 1400)).isEqualTo(new ClockAlignment(1200, 200));
  }

  @Test
  void integersWhoseSumsAreExactMustAgreeExactly() {
    var three = new Range(3, true);
    assertThat(product(1, three, three).exactSize()).isEqualTo(1 << 24);
    assertThat(product(0.25f, three, three).exactSize()).isEqualTo(1 << 22);
    assertThat(product(4, three, three).exactSize()).isEqualTo(1 << 24);
    assertThat(product(0.3f, three, three).exactSize()).isNegative();
    assertThat(product(1, three, three).and(new Range(7, true)).exactSize()).isEqualTo(1 << 24);
    assertThat(product(1, three, three).and(new Range(0.5, false)).exactSize()).isNegative();
    var range = HostAccess.HOST.range(DType.FP32, MemorySegment.ofArray(new float[] {1, -2.5f}));
    assertThat(range).isEqualTo(new Range(2.5, false));
    assertThat(product(1, range, three).exactSize()).isNegative();
  }

  private static ProductError product(float scale, Range left, Range right) {
    return ProductError.of(Precision.FP32, 8, scale, left, right);
  }

  /// A model's standard deviation grows with the square root of the depth, up to the worst case of
  /// that number of roundings.
  @Test
  void aBoundGrowsWithTheRootOfTheDepth() {
    var some = new Range(2.5, false);
    double one = widened(1, some);
    assertThat(one).isEqualTo(8 * 0x1p-24);
    assertThat(widened(397, some) / widened(97, some)).isBetween(1.99, 2.01);
    assertThat(ProductError.rmsConfidence(1)).isEqualTo(ProductError.ELEMENT_CONFIDENCE);
    assertThat(ProductError.rmsConfidence(1 << 20)).isBetween(3.0, 3.01);
  }

  @Test
  void equalProductsMakeADeviationLarger() {
    assertThat(repetition(100, _ -> 0.3f)).isEqualTo(10);
    assertThat(repetition(5000, _ -> 0.3f)).isEqualTo(16);
    assertThat(repetition(100, k -> k % 4 + 1)).isEqualTo(5);
    assertThat(repetition(100, k -> k % 2 == 0 ? 0.3f : -0.3f)).isEqualTo(10);
    assertThat(repetition(100, k -> k + 0.3f)).isEqualTo(1);
    // Products of 0 are added without a rounding.
    assertThat(repetition(100, k -> k % 4 == 0 ? 0.3f : 0)).isEqualTo(5);
    assertThat(repetition(100, _ -> 0)).isEqualTo(1);
    assertThat(repetition(0, _ -> 1)).isEqualTo(1);
  }

  /// Returns the repetition of 6 x depth times depth x 5 numbers: `row` in row 3 of the left factor
  /// and distinct numbers in its other rows, 1 in the right factor.
  private static double repetition(int depth, IntToDoubleFunction row) {
    var left = new float[6 * depth];
    var transposed = new float[6 * depth];
    for (int i = 0; i < 6; i++) {
      for (int k = 0; k < depth; k++) {
        float value = i == 3 ? (float) row.applyAsDouble(k) : i * depth + k + 1;
        left[i * depth + k] = value;
        transposed[k * 6 + i] = value;
      }
    }
    var ones = new float[depth * 5];
    Arrays.fill(ones, 1);
    var right = Matrix.of(MemorySegment.ofArray(ones), DType.FP32, depth, 5);
    var repetition =
        Repetition.of(
            HostAccess.HOST, Matrix.of(MemorySegment.ofArray(left), DType.FP32, 6, depth), right);
    assertThat(
            Repetition.of(
                HostAccess.HOST,
                Matrix.transposed(MemorySegment.ofArray(transposed), DType.FP32, 6, depth),
                right))
        .isEqualTo(repetition);
    return repetition;
  }

  private static double widened(int depth, Range range) {
    return ProductError.of(Precision.FP32, depth, 1, range, range)
        .widening(ProductError.ELEMENT_CONFIDENCE)
        .share();
  }
}
