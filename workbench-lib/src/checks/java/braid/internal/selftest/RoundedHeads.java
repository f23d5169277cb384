package braid.internal.selftest;

import braid.model.AttentionSpec;

/// Keys and values as [AttentionSpec#exchanged] rounds them: each number becomes the nearest one of
/// all that e4m3 has, times the scale.
final class RoundedHeads {
  /// Positive numbers of e4m3 and 0, by their bits.
  private static final float[] E4M3 = new float[127];

  static {
    for (int bits = 0; bits < E4M3.length; bits++) {
      int exponent = bits / 8;
      int fraction = bits % 8;
      E4M3[bits] = Math.scalb(exponent == 0 ? fraction : 8f + fraction, Math.max(exponent, 1) - 10);
    }
  }

  private RoundedHeads() {}

  static float[] of(AttentionSpec spec, float[] numbers) {
    var rounded = new float[numbers.length];
    for (int head = 0; head < numbers.length; head += spec.headSize()) {
      float most = 0;
      for (int i = head; i < head + spec.headSize(); i++) {
        most = Math.max(most, Math.abs(numbers[i]));
      }
      float scale = 0x1p-100f;
      while (most / scale > E4M3[126] && Float.isFinite(most)) {
        scale *= 2;
      }
      for (int i = head; i < head + spec.headSize(); i++) {
        rounded[i] =
            Float.isFinite(most) ? largest(spec, nearest(numbers[i] / scale) * scale) : Float.NaN;
      }
    }
    return rounded;
  }

  /// Returns the nearest number of e4m3; of two, the one whose last bit is 0.
  private static float nearest(float number) {
    float size = Math.abs(number);
    int best = 0;
    for (int bits = 1; bits < E4M3.length; bits++) {
      float distance = Math.abs(E4M3[bits] - size);
      float least = Math.abs(E4M3[best] - size);
      best = distance < least || (distance == least && bits % 2 == 0) ? bits : best;
    }
    return Math.copySign(E4M3[best], number);
  }

  /// Returns the number, or the largest of the type if rounding has led beyond it.
  private static float largest(AttentionSpec spec, float number) {
    float size = Math.abs(number);
    while (Float.isInfinite(spec.dtype().round(size))) {
      size = Math.nextDown(size);
    }
    return Math.copySign(spec.dtype().round(size), number);
  }
}
