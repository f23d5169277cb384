package braid.internal.resource;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.DType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Bounds of one number. The kernels are tested with the same cases.
class BoundsTest {
  @ParameterizedTest
  @CsvSource({
    "3, 2.9, 3.1, 3.1, true",
    "3, 2.9, 3.1, 3.2, false",
    "3, 2.9, 3.1, NaN, false",
    "NaN, NaN, NaN, NaN, true",
    "NaN, NaN, NaN, 3, false",
    "NaN, NaN, NaN, Infinity, false",
    "Infinity, Infinity, Infinity, Infinity, true",
    "Infinity, Infinity, Infinity, -Infinity, false",
    "Infinity, Infinity, Infinity, 60000, false",
    "5, -Infinity, Infinity, NaN, true",
    "NaN, -Infinity, NaN, -Infinity, true",
    "NaN, -Infinity, NaN, 4, false",
    "65519, 65000, 65600, Infinity, true",
  })
  void allowNumbersWithin(float expected, float low, float high, float got, boolean right) {
    var bounds = new Bounds(expected, low, high).rounded(DType.FP16);
    assertThat(bounds.allow(DType.FP16.round(got))).isEqualTo(right);
  }

  @ParameterizedTest
  @CsvSource({
    "2, 2, 2, 1.9546, true",
    "2, 2, 2, 1.957, false",
    "-1, -2, 0, -0.17, true",
    "-1, -2, 0, -0.1711, false",
    "-1, -2, 0, 0.001, false",
    "-Infinity, -Infinity, -Infinity, NaN, true",
    "-Infinity, -Infinity, -Infinity, 0, true",
    "-Infinity, -Infinity, -Infinity, 1, false",
    "NaN, NaN, NaN, NaN, true",
    "NaN, NaN, NaN, 0, false",
    "Infinity, Infinity, Infinity, Infinity, true",
  })
  void geluTurnsBelowZero(float expected, float low, float high, float got, boolean right) {
    var bounds = new Bounds(expected, low, high).activated().rounded(DType.FP16);
    assertThat(bounds.allow(DType.FP16.round(got))).isEqualTo(right);
  }

  @Test
  void halfAStepIsExplained() {
    assertThat(Bounds.unexplained(DType.BF16, 1.5f, 1.515625f)).isEqualTo(0x1p-6 - 0x1p-8);
    assertThat(Bounds.unexplained(DType.FP16, 0, 0x1p-24f)).isEqualTo(0x1p-25);
    assertThat(Bounds.unexplained(DType.TF32, 1, Math.nextUp(1f))).isEqualTo(0x1p-24);
    assertThat(Bounds.unexplained(DType.FP32, 3, 3)).isZero();
  }

  @Test
  void fp8Saturates() {
    assertThat(Bounds.unexplained(DType.FP8_E4M3, 1000, 448)).isZero();
    assertThat(Bounds.unexplained(DType.FP8_E5M2, -1e9f, -57344)).isZero();
    assertThat(Bounds.unexplained(DType.FP8_E4M3, 1000, 384)).isEqualTo(64 - 16);
    assertThat(Bounds.unexplained(DType.FP16, 65600, 65504)).isEqualTo(96 - 16);
  }

  @Test
  void scalesAllBounds() {
    var bounds = new Bounds(3, 2.9f, 3.1f).scaled(4);
    assertThat(bounds).isEqualTo(new Bounds(12, 2.9f * 4, 3.1f * 4));
    assertThat(bounds.rounded(DType.FP8_E4M3)).isEqualTo(new Bounds(12, 12, 12));
    assertThat(new Bounds(3, 2.9f, 3.1f).scaled(200).rounded(DType.FP8_E4M3))
        .isEqualTo(new Bounds(448, 448, 448));
  }
}
