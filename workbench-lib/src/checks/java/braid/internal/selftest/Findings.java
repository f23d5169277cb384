package braid.internal.selftest;

import braid.model.DType;
import org.jspecify.annotations.Nullable;

/// First fault of a case. It is thrown at the end, since an exception between calls that ranks make
/// together would leave the others waiting.
public final class Findings {
  private static final double ACTIVATED_ATOL = 1e-6;
  private static final double ACTIVATED_RTOL = 0x1p-22;

  private @Nullable String first;

  /// Records a fault, unless one was found before.
  void found(String wrong) {
    if (first == null) {
      first = wrong;
    }
  }

  /// Requires equal numbers; 0 equals -0.
  void same(String subject, float[] wanted, float[] got) {
    near(subject, wanted, got, 0, 0);
  }

  /// Requires every number within the bounds.
  void near(String subject, float[] wanted, float[] got, double atol, double rtol) {
    if (first != null) {
      return;
    }
    if (wanted.length != got.length) {
      first = "%s must have %d numbers but has %d".formatted(subject, wanted.length, got.length);
      return;
    }
    for (int i = 0; i < wanted.length; i++) {
      double most = atol + rtol * Math.abs(wanted[i]);
      if (wanted[i] != got[i] && !(Math.abs((double) wanted[i] - got[i]) <= most)) {
        first =
            "%s[%d] must be %s%s but was %s"
                .formatted(subject, i, wanted[i], most == 0 ? "" : " within " + most, got[i]);
        return;
      }
    }
  }

  /// Requires every number within its own bound.
  void within(String subject, double[] wanted, double[] bounds, float[] got) {
    if (first != null) {
      return;
    }
    if (wanted.length != got.length) {
      first = "%s must have %d numbers but has %d".formatted(subject, wanted.length, got.length);
      return;
    }
    for (int i = 0; i < wanted.length; i++) {
      if (wanted[i] != got[i] && !(Math.abs(wanted[i] - got[i]) <= bounds[i])) {
        first =
            "%s[%d] must be %s within %s but was %s"
                .formatted(subject, i, wanted[i], bounds[i], got[i]);
        return;
      }
    }
  }

  /// Requires every number to be the rounding, in that type, of a value × scale within fp32
  /// accuracy of the wanted GELU.
  void activated(String subject, DType dtype, float[] wanted, float scale, float[] got) {
    var least = new float[wanted.length];
    for (int i = 0; i < wanted.length && i < got.length; i++) {
      double off = ACTIVATED_ATOL + ACTIVATED_RTOL * Math.abs(wanted[i]);
      float low = dtype.round((float) (wanted[i] - off) * scale);
      float high = dtype.round((float) (wanted[i] + off) * scale);
      least[i] = low <= got[i] && got[i] <= high ? got[i] : dtype.round(wanted[i] * scale);
    }
    same(subject, least, got);
  }

  public void orThrow() {
    if (first != null) {
      throw new CaseFailed(first);
    }
  }
}
