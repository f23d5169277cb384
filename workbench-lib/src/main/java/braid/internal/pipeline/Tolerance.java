package braid.internal.pipeline;

import braid.model.BraidException;
import java.util.Locale;

/// Tolerance set by the user: a value may differ from the reference by `atol` + `rtol` ×
/// |reference|.
public record Tolerance(double atol, double rtol) {
  static final Tolerance EXACT = new Tolerance(0, 0);

  public Tolerance {
    if (!(atol >= 0) || !(rtol >= 0)) {
      throw new BraidException(
          "atol and rtol must be 0 or more but were %s and %s".formatted(atol, rtol));
    }
  }

  /// Returns the largest difference that is allowed from an expected value.
  double allowed(double expected) {
    return atol + rtol * Math.abs(expected);
  }

  @Override
  public String toString() {
    return equals(EXACT)
        ? "exactly"
        : String.format(Locale.ROOT, "within atol=%.3g rtol=%.3g", atol, rtol);
  }
}
