package braid.internal.host;

import braid.internal.work.Matrix;
import braid.model.DType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Conversions of many numbers. Ranks run with the first compiler only. So the type is decided
/// outside the loops, and they work on arrays: an access to a segment takes several times as long.
public final class Numbers {
  /// Numbers that are converted at once.
  private static final int CHUNK = 2048;

  private Numbers() {}

  /// Converts every element to fp32.
  public static void widen(DType dtype, MemorySegment from, MemorySegment to) {
    if (dtype.isStoredAsFp32()) {
      MemorySegment.copy(from, 0, to, 0, from.byteSize());
      return;
    }
    long count = from.byteSize() / dtype.bytes();
    var numbers = new float[(int) Math.min(CHUNK, count)];
    for (long start = 0; start < count; start += CHUNK) {
      int some = (int) Math.min(CHUNK, count - start);
      load(dtype, from.asSlice(start * dtype.bytes(), (long) some * dtype.bytes()), numbers);
      MemorySegment.copy(
          numbers, 0, to, ValueLayout.JAVA_FLOAT_UNALIGNED, start * Float.BYTES, some);
    }
  }

  /// Loads all numbers of a segment.
  static void load(DType dtype, MemorySegment from, float[] to) {
    int count = (int) (from.byteSize() / dtype.bytes());
    switch (dtype) {
      case FP32, TF32 ->
          MemorySegment.copy(from, ValueLayout.JAVA_FLOAT_UNALIGNED, 0, to, 0, count);
      case BF16 -> {
        var bits = from.toArray(ValueLayout.JAVA_SHORT_UNALIGNED);
        for (int i = 0; i < count; i++) {
          to[i] = Float.intBitsToFloat(bits[i] << 16);
        }
      }
      case FP16 -> {
        var bits = from.toArray(ValueLayout.JAVA_SHORT_UNALIGNED);
        for (int i = 0; i < count; i++) {
          to[i] = Float.float16ToFloat(bits[i]);
        }
      }
      case FP8_E4M3, FP8_E5M2 -> {
        for (int i = 0; i < count; i++) {
          to[i] = dtype.load(from, i);
        }
      }
    }
  }

  /// Converts a matrix to fp32 without gaps, in the same storage order.
  static Matrix widen(Matrix from, MemorySegment to) {
    int storedRows = from.transposed() ? from.columns() : from.rows();
    int storedColumns = from.transposed() ? from.rows() : from.columns();
    int bytes = from.dtype().bytes();
    if (from.stride() == storedColumns) {
      long all = (long) storedRows * storedColumns * bytes;
      widen(from.dtype(), from.segment().asSlice(0, all), to);
    } else {
      for (int row = 0; row < storedRows; row++) {
        widen(
            from.dtype(),
            from.segment()
                .asSlice((long) row * from.stride() * bytes, (long) storedColumns * bytes),
            to.asSlice((long) row * storedColumns * Float.BYTES));
      }
    }
    return new Matrix(
        to, DType.FP32, from.rows(), from.columns(), storedColumns, from.transposed());
  }

  /// Rounds a matrix in fp32 without gaps, and stores it by rows.
  static void narrow(Matrix from, Matrix to) {
    for (int row = 0; row < to.rows(); row++) {
      narrow(to.dtype(), from.rows(row, 1).bytes(), to.rows(row, 1).bytes());
    }
  }

  /// Rounds fp32 numbers to a type and stores them.
  static void narrow(DType dtype, MemorySegment from, MemorySegment to) {
    if (dtype.isStoredAsFp32()) {
      MemorySegment.copy(from, 0, to, 0, to.byteSize());
      return;
    }
    long count = to.byteSize() / dtype.bytes();
    for (long start = 0; start < count; start += CHUNK) {
      long some = Math.min(CHUNK, count - start);
      var numbers =
          from.asSlice(start * Float.BYTES, some * Float.BYTES)
              .toArray(ValueLayout.JAVA_FLOAT_UNALIGNED);
      store(dtype, numbers, to.asSlice(start * dtype.bytes(), some * dtype.bytes()));
    }
  }

  /// Rounds numbers to a type and stores them.
  static void store(DType dtype, float[] from, MemorySegment to) {
    switch (dtype) {
      case FP32, TF32 ->
          MemorySegment.copy(from, 0, to, ValueLayout.JAVA_FLOAT_UNALIGNED, 0, from.length);
      case BF16 -> {
        var bits = new short[from.length];
        for (int i = 0; i < bits.length; i++) {
          bits[i] = (short) (Float.floatToRawIntBits(dtype.round(from[i])) >>> 16);
        }
        MemorySegment.copy(bits, 0, to, ValueLayout.JAVA_SHORT_UNALIGNED, 0, bits.length);
      }
      case FP16 -> {
        var bits = new short[from.length];
        for (int i = 0; i < bits.length; i++) {
          bits[i] = Float.floatToFloat16(from[i]);
        }
        MemorySegment.copy(bits, 0, to, ValueLayout.JAVA_SHORT_UNALIGNED, 0, bits.length);
      }
      case FP8_E4M3, FP8_E5M2 -> {
        for (int i = 0; i < from.length; i++) {
          dtype.store(to, i, from[i]);
        }
      }
    }
  }

  /// Rounds fp32 numbers to the precision of a type, in place.
  static void round(DType dtype, MemorySegment values) {
    long count = values.byteSize() / Float.BYTES;
    for (long i = 0; i < count; i++) {
      values.setAtIndex(
          ValueLayout.JAVA_FLOAT, i, dtype.round(values.getAtIndex(ValueLayout.JAVA_FLOAT, i)));
    }
  }

  static void scale(MemorySegment values, float amount) {
    if (amount == 1) {
      return;
    }
    long count = values.byteSize() / Float.BYTES;
    for (long i = 0; i < count; i++) {
      values.setAtIndex(
          ValueLayout.JAVA_FLOAT, i, amount * values.getAtIndex(ValueLayout.JAVA_FLOAT, i));
    }
  }

  /// Largest absolute value; NaN if any number is NaN.
  static float largest(MemorySegment values) {
    float largest = 0;
    long count = values.byteSize() / Float.BYTES;
    for (long i = 0; i < count; i++) {
      largest = Math.max(largest, Math.abs(values.getAtIndex(ValueLayout.JAVA_FLOAT, i)));
    }
    return largest;
  }
}
