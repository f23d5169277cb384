package braid.internal.selftest;

import braid.model.DType;
import java.util.function.IntFunction;
import java.util.function.IntToDoubleFunction;
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
    compare(subject, i -> wanted[i], i -> atol + rtol * Math.abs(wanted[i]), wanted.length, got);
  }

  /// Requires every number within its own bound.
  void within(String subject, double[] wanted, double[] bounds, float[] got) {
    compare(subject, i -> wanted[i], i -> bounds[i], wanted.length, got);
  }

  private void compare(
      String subject,
      IntFunction<Number> wanted,
      IntToDoubleFunction bounds,
      int count,
      float[] got) {
    if (first == null && count != got.length) {
      first = "%s must have %d numbers but has %d".formatted(subject, count, got.length);
    }
    for (int i = 0; i < count && first == null; i++) {
      double value = wanted.apply(i).doubleValue();
      double most = bounds.applyAsDouble(i);
      if (value != got[i] && !(Math.abs(value - got[i]) <= most)) {
        first =
            "%s[%d] must be %s%s but was %s"
                .formatted(subject, i, wanted.apply(i), most == 0 ? "" : " within " + most, got[i]);
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
