package braid.internal.work;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/// The exponential that weighs scores.
class AttentionTileTest {
  private static final float STEP = 0.001f;

  @Test
  void theExponentialIsWithinTwoUnitsInTheLastPlace() {
    double most = 0;
    for (float x = 0; x > -87; x -= STEP) {
      double exact = Math.exp(x);
      most = Math.max(most, Math.abs(AttentionTile.exp(x) - exact) / Math.ulp((float) exact));
    }
    assertThat(most).isLessThan(2);
    assertThat(AttentionTile.exp(0)).isEqualTo(1);
    assertThat(AttentionTile.exp(-87.5f)).isZero();
    assertThat(AttentionTile.exp(Float.NEGATIVE_INFINITY)).isZero();
    assertThat(AttentionTile.exp(Float.NaN)).isNaN();
  }
}
