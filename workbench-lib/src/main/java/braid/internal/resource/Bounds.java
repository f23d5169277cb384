package braid.internal.resource;

import braid.model.DType;

/// One expected number in fp32, before it is rounded to the type it is stored in, and the interval
/// that holds every right one. Where it is not finite, `low` and `high` are what is expected; they
/// are the two infinities where anything may come of an overflow.
public record Bounds(float expected, float low, float high) {
  private static final double SQRT_2_OVER_PI = Math.sqrt(2 / Math.PI);
  private static final double CUBIC = 0.044715;

  /// The place and value of the minimum of GELU in its tanh form.
  private static final double MINIMUM_AT = -0.7524614;

  private static final double MINIMUM = -0.1700409;

  /// Rounding of a GELU in fp32: a share of the result, and what `1 + tanh` loses below 0, where it
  /// is zero from about -8 on.
  private static final double GELU_SHARE = 0x1p-20;

  private static final double GELU_LOST = 0x1p-19;
  private static final double GELU_ZERO_BELOW = 8;

  /// The same of GELU, with the rounding of the activation itself.
  public Bounds activated() {
    if (expected == Float.NEGATIVE_INFINITY) {
      // By its formula GELU is not a number there; its limit is 0.
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

  /// The same of numbers that are stored multiplied by a positive scale.
  public Bounds scaled(float by) {
    return by == 1 ? this : new Bounds(expected * by, low * by, high * by);
  }

  /// What is left once the type has stored it. Rounding keeps the order, so the interval stays one.
  public Bounds rounded(DType dtype) {
    return new Bounds(dtype.round(expected), dtype.round(low), dtype.round(high));
  }

  /// Whether these rounded bounds allow that number.
  public boolean allow(float found) {
    if (found == expected || (Float.isNaN(found) && Float.isNaN(expected))) {
      return true;
    }
    return anything() || (low <= found && found <= high) || (undecided() && !Float.isFinite(found));
  }

  private boolean anything() {
    return low == Float.NEGATIVE_INFINITY && high == Float.POSITIVE_INFINITY;
  }

  /// Whether an overflow decides if it is a number.
  private boolean undecided() {
    boolean all = Float.isNaN(expected) && Float.isNaN(low) && Float.isNaN(high);
    boolean any = Float.isNaN(expected) || Float.isNaN(low) || Float.isNaN(high);
    return any && !all;
  }

  /// How far from what is expected the interval reaches.
  public double reach() {
    return Math.max((double) high - expected, (double) expected - low);
  }

  /// How far a stored number is from what was expected, beyond half a step of the type: what its
  /// last rounding does not explain. FP8 stores at most its largest number.
  public static double unexplained(DType dtype, float expected, float found) {
    float largest = dtype.isFp8() ? dtype.round(Float.MAX_VALUE) : Float.POSITIVE_INFINITY;
    float wanted = Math.max(-largest, Math.min(expected, largest));
    return Math.max(0, Math.abs((double) found - wanted) - step(dtype, found) / 2);
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
