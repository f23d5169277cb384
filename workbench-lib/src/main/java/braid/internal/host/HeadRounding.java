package braid.internal.host;

import braid.internal.work.Recoding;
import braid.model.DType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/// Rounds heads to e4m3 and restores them, row by row. Like [Numbers], it works on arrays.
final class HeadRounding {
  /// Exponent of the largest number of e4m3.
  private static final int LARGEST_EXPONENT = 8;

  /// Smaller numbers have this scale too, so that no product with a scale is subnormal.
  private static final int LEAST_EXPONENT = -100;

  /// Bits of fp32 that e4m3 has not.
  private static final int DROPPED = 20;

  /// One less than half of the last bit that is kept.
  private static final int BELOW_HALF = (1 << (DROPPED - 1)) - 1;

  /// Difference of the exponent biases of fp32 and e4m3.
  private static final int BIAS = 120;

  private static final float LEAST_NORMAL = 0x1p-6f;

  /// A number whose last place in fp32 is the least positive number of e4m3.
  private static final float STEPPED = 0x1p14f;

  private static final float[] RESTORED = new float[256];

  static {
    var bits = MemorySegment.ofArray(new byte[RESTORED.length]);
    for (int i = 0; i < RESTORED.length; i++) {
      bits.set(ValueLayout.JAVA_BYTE, i, (byte) i);
      RESTORED[i] = DType.FP8_E4M3.load(bits, i);
    }
  }

  private HeadRounding() {}

  static void run(Recoding recoding) {
    var wide = recoding.wide();
    int headSize = recoding.headSize();
    int roundedSize = recoding.roundedSize();
    var row = new float[wide.columns()];
    var bytes = new byte[recoding.rounded().columns()];
    var rounded = MemorySegment.ofArray(bytes);
    for (int i = 0; i < wide.rows(); i++) {
      var given = recoding.rounded().rows(i, 1).bytes();
      if (recoding.rounds()) {
        Numbers.load(wide.dtype(), wide.rows(i, 1).bytes(), row);
        for (int head = 0; head < recoding.heads(); head++) {
          float scale = round(row, head * headSize, headSize, bytes, head * roundedSize);
          rounded.set(
              ValueLayout.JAVA_FLOAT_UNALIGNED, (long) head * roundedSize + headSize, scale);
        }
        given.copyFrom(rounded);
      } else {
        rounded.copyFrom(given);
        for (int head = 0; head < recoding.heads(); head++) {
          float scale =
              rounded.get(ValueLayout.JAVA_FLOAT_UNALIGNED, (long) head * roundedSize + headSize);
          restore(bytes, head * roundedSize, scale, row, head * headSize, headSize);
        }
        clamp(row, wide.dtype().largest());
        Numbers.store(wide.dtype(), row, wide.rows(i, 1).bytes());
      }
    }
  }

  /// Rounds the numbers of a head; returns their scale.
  private static float round(float[] from, int first, int count, byte[] to, int start) {
    float largest = 0;
    for (int i = 0; i < count; i++) {
      largest = Math.max(largest, Math.abs(from[first + i]));
    }
    float scale = scale(largest);
    if (Float.isNaN(scale)) {
      Arrays.fill(to, start, start + count, (byte) 0);
      return scale;
    }
    for (int i = 0; i < count; i++) {
      to[start + i] = narrow(from[first + i] / scale);
    }
    return scale;
  }

  /// Returns the least power of two by which the largest number is at most 448; NaN for a NaN or
  /// infinity.
  private static float scale(float largest) {
    if (!Float.isFinite(largest)) {
      return Float.NaN;
    }
    int exponent = Math.getExponent(largest) - LARGEST_EXPONENT;
    float scale = Math.scalb(1f, Math.max(exponent, LEAST_EXPONENT));
    return largest / scale > DType.FP8_E4M3.largest() ? 2 * scale : scale;
  }

  /// Returns the nearest number of e4m3, of two that whose last bit is 0, of one that is at most
  /// 448.
  private static byte narrow(float number) {
    float size = Math.abs(number);
    int bits = Float.floatToRawIntBits(size);
    int sign = Float.floatToRawIntBits(number) >>> 24 & 0x80;
    int rounded =
        size < LEAST_NORMAL
            ? Float.floatToRawIntBits(size + STEPPED) - Float.floatToRawIntBits(STEPPED)
            : ((bits + BELOW_HALF + ((bits >> DROPPED) & 1)) >> DROPPED) - (BIAS << 3);
    return (byte) (sign | rounded);
  }

  private static void restore(
      byte[] from, int start, float scale, float[] to, int first, int count) {
    for (int i = 0; i < count; i++) {
      to[first + i] = RESTORED[from[start + i] & 0xff] * scale;
    }
  }

  /// Rounding may lead beyond the largest number of a type.
  private static void clamp(float[] numbers, float largest) {
    for (int i = 0; i < numbers.length; i++) {
      if (Math.abs(numbers[i]) > largest) {
        numbers[i] = Math.copySign(largest, numbers[i]);
      }
    }
  }
}
