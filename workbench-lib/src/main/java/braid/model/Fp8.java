package braid.model;

/// One of the two 8-bit floating point formats. Larger values saturate at the largest one, as in
/// training on GPUs: an infinity would spoil every sum that contains it.
final class Fp8 {
  /// Without infinities; only all ones is NaN.
  static final Fp8 E4M3 = new Fp8(3, 7, 0x7e, 0x7f);

  /// With infinities, like IEEE formats; they are read but never written.
  static final Fp8 E5M2 = new Fp8(2, 15, 0x7b, 0x7f);

  private static final int SIGN = 0x80;

  private final int fractionBits;
  private final int bias;
  private final int largestBits;
  private final int nanBits;
  private final float[] widened = new float[256];

  private Fp8(int fractionBits, int bias, int largestBits, int nanBits) {
    this.fractionBits = fractionBits;
    this.bias = bias;
    this.largestBits = largestBits;
    this.nanBits = nanBits;
    for (int bits = 0; bits < SIGN; bits++) {
      float value = decode(bits);
      widened[bits] = value;
      widened[bits | SIGN] = -value;
    }
  }

  private float decode(int bits) {
    if (bits > largestBits) {
      // E5M2 uses 0x7c for infinity, E4M3 has none.
      return bits == largestBits + 1 && bits != nanBits ? Float.POSITIVE_INFINITY : Float.NaN;
    }
    int exponent = bits >> fractionBits;
    int fraction = bits & ((1 << fractionBits) - 1);
    // Subnormal numbers have no leading one, and their exponent counts as 1.
    int significand = exponent == 0 ? fraction : fraction | (1 << fractionBits);
    return Math.scalb((float) significand, Math.max(exponent, 1) - bias - fractionBits);
  }

  float widen(byte bits) {
    return widened[bits & 0xff];
  }

  byte narrow(float value) {
    int sign = Float.floatToRawIntBits(value) < 0 ? SIGN : 0;
    if (Float.isNaN(value)) {
      return (byte) (sign | nanBits);
    }
    float size = Math.abs(value);
    if (size >= widened[largestBits]) {
      return (byte) (sign | largestBits);
    }
    int exponent = Math.max(Math.getExponent(size), 1 - bias);
    // Number of the smallest steps at this exponent; rounding up to a power of two carries into the
    // exponent.
    int steps = (int) Math.rint(Math.scalb(size, fractionBits - exponent));
    int bits = ((exponent + bias - 1) << fractionBits) + steps;
    return (byte) (sign | Math.min(bits, largestBits));
  }
}
