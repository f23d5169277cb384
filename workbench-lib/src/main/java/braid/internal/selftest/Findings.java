package braid.internal.selftest;

import org.jspecify.annotations.Nullable;

/// What a case found wrong first. It is thrown at the end: between calls that ranks make together
/// it would leave the others waiting.
public final class Findings {
  private @Nullable String first;

  /// Keeps that, unless something was wrong before.
  void found(String wrong) {
    if (first == null) {
      first = wrong;
    }
  }

  /// Every number must be equal; which zero it is does not matter.
  void same(String of, float[] wanted, float[] got) {
    near(of, wanted, got, 0, 0);
  }

  /// Every number must be that near.
  void near(String of, float[] wanted, float[] got, double atol, double rtol) {
    if (first != null) {
      return;
    }
    if (wanted.length != got.length) {
      first = "%s must have %d numbers but has %d".formatted(of, wanted.length, got.length);
      return;
    }
    for (int i = 0; i < wanted.length; i++) {
      double most = atol + rtol * Math.abs(wanted[i]);
      if (wanted[i] != got[i] && !(Math.abs((double) wanted[i] - got[i]) <= most)) {
        first =
            "%s[%d] must be %s%s but was %s"
                .formatted(of, i, wanted[i], most == 0 ? "" : " within " + most, got[i]);
        return;
      }
    }
  }

  public void orThrow() {
    if (first != null) {
      throw new CaseFailed(first);
    }
  }
}
