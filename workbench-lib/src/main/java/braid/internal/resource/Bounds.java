package braid.internal.resource;

import braid.model.DType;

/// One expected number in fp32, before it is rounded to the type it is stored in, and the interval
/// of all correct results. If the expected number is not finite, `low` and `high` are equal to it;
/// they are the two infinities if an overflow allows any result.
public record Bounds(float expected, float low, float high) {
  private static final double SQRT_2_OVER_PI = Math.sqrt(2 / Math.PI);
  private static final double CUBIC = 0.044715;

  /// Position and value of the minimum of GELU in its tanh form.
  private static final double MINIMUM_AT = -0.7524614;

  private static final double MINIMUM = -0.1700409;

  /// Rounding of a GELU in fp32: a share of the result, and the cancellation in `1 + tanh` for
  /// negative numbers, which is zero below about -8.
  private static final double GELU_SHARE = 0x1p-20;

  private static final double GELU_LOST = 0x1p-19;
  private static final double GELU_ZERO_BELOW = 8;

  /// Returns the bounds after GELU, including its own rounding.
  public Bounds activated() {
    if (expected == Float.NEGATIVE_INFINITY) {
      // The formula of GELU is NaN here; its limit is 0.
      return new Bounds(Float.NaN, -1, 0);
    }
    if (anything()) {
      return new Bounds((float) gelu(expected), low, high);
    }
    double least = gelu(low);
    double most = gelu(high);
    double under = low <= MINIMUM_AT && high >= MINIMUM_AT ? MINIMUM : Math.min(least, most);
    double size = Math.max(Math.abs((double) low), Math.abs((double) high));
    double lost = GELU_LOST * Math.min(size, GELU_ZERO_BELOW);
    double over = Math.max(least, most);
    return new Bounds(
        (float) gelu(expected),
        (float) (under - lost - GELU_SHARE * Math.abs(under)),
        (float) (over + lost + GELU_SHARE * Math.abs(over)));
  }

  private static double gelu(double x) {
    return x == Double.NEGATIVE_INFINITY
        ? 0
        : 0.5 * x * (1 + Math.tanh(SQRT_2_OVER_PI * (x + CUBIC * x * x * x)));
  }

  /// Returns the bounds of numbers that are stored multiplied by a positive scale.
  public Bounds scaled(float amount) {
    return amount == 1 ? this : new Bounds(expected * amount, low * amount, high * amount);
  }

  /// Returns the bounds after rounding to the type. Rounding is monotonic, so they remain an
  /// interval.
  public Bounds rounded(DType dtype) {
    return new Bounds(dtype.round(expected), dtype.round(low), dtype.round(high));
  }

  /// Returns true if these rounded bounds allow the number.
  public boolean allow(float found) {
    if (found == expected || (Float.isNaN(found) && Float.isNaN(expected))) {
      return true;
    }
    return anything() || (low <= found && found <= high) || (undecided() && !Float.isFinite(found));
  }

  private boolean anything() {
    return low == Float.NEGATIVE_INFINITY && high == Float.POSITIVE_INFINITY;
  }

  /// Returns true if an overflow decides whether the result is NaN.
  private boolean undecided() {
    boolean all = Float.isNaN(expected) && Float.isNaN(low) && Float.isNaN(high);
    boolean any = Float.isNaN(expected) || Float.isNaN(low) || Float.isNaN(high);
    return any && !all;
  }

  /// Largest distance of the interval's ends from the expected number.
  public double reach() {
    return Math.max((double) high - expected, (double) expected - low);
  }

  /// Distance of a stored number from the expected one beyond half a step of the type, which the
  /// last rounding explains. FP8 saturates at its largest number.
  public static double unexplained(DType dtype, float expected, float found) {
    float largest = dtype.isFp8() ? dtype.round(Float.MAX_VALUE) : Float.POSITIVE_INFINITY;
    float clamped = Math.max(-largest, Math.min(expected, largest));
    return Math.max(0, Math.abs((double) found - clamped) - step(dtype, found) / 2);
  }

  private static double step(DType dtype, float value) {
    int smallestExponent =
        switch (dtype) {
          case FP32, TF32, BF16 -> -126;
          case FP16, FP8_E5M2 -> -14;
          case FP8_E4M3 -> -6;
        };
    var stored = dtype.isStoredAsFp32() ? DType.FP32 : dtype;
    return Math.scalb(stored.epsilon(), Math.max(Math.getExponent(value), smallestExponent));
  }
}
