package braid.internal.host;

import braid.internal.work.Recoding;
import braid.model.DType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Rounds heads to e4m3 and restores them, row by row.
final class HeadRounding {
  /// Exponent of the largest number of e4m3.
  private static final int LARGEST_EXPONENT = 8;

  /// Smaller numbers have this scale too, so that no product with a scale is subnormal.
  private static final int LEAST_EXPONENT = -100;

  private HeadRounding() {}

  static void run(Recoding recoding) {
    int headSize = recoding.headSize();
    var wide = recoding.wide();
    var narrow = recoding.narrow();
    var numbers = new float[headSize];
    for (int row = 0; row < wide.rows(); row++) {
      for (int head = 0; head < recoding.heads(); head++) {
        long first = (long) row * wide.stride() + (long) head * headSize;
        long rounded = (long) row * narrow.stride() + (long) head * recoding.roundedBytes();
        if (recoding.rounds()) {
          for (int i = 0; i < headSize; i++) {
            numbers[i] = wide.dtype().load(wide.segment(), first + i);
          }
          round(numbers, narrow.segment(), rounded);
        } else {
          restore(narrow.segment(), rounded, numbers, wide.dtype());
          for (int i = 0; i < headSize; i++) {
            wide.dtype().store(wide.segment(), first + i, numbers[i]);
          }
        }
      }
    }
  }

  private static void round(float[] numbers, MemorySegment to, long start) {
    float largest = 0;
    for (float each : numbers) {
      largest = Math.max(largest, Math.abs(each));
    }
    float scale = scale(largest);
    for (int i = 0; i < numbers.length; i++) {
      DType.FP8_E4M3.store(to, start + i, numbers[i] / scale);
    }
    to.set(ValueLayout.JAVA_FLOAT_UNALIGNED, start + numbers.length, scale);
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

  private static void restore(MemorySegment from, long start, float[] numbers, DType type) {
    float scale = from.get(ValueLayout.JAVA_FLOAT_UNALIGNED, start + numbers.length);
    float limit = type.largest();
    for (int i = 0; i < numbers.length; i++) {
      float number = DType.FP8_E4M3.load(from, start + i) * scale;
      numbers[i] = Math.abs(number) > limit ? Math.copySign(limit, number) : number;
    }
  }
}
