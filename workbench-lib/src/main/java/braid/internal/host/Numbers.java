package braid.internal.host;

import braid.internal.work.Matrix;
import braid.model.DType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Conversions of many numbers. The type is decided outside the loops: ranks run with the first
/// compiler only, which would decide it for every number.
public final class Numbers {
  private Numbers() {}

  /// Converts every element to fp32.
  public static void widen(DType dtype, MemorySegment from, MemorySegment to) {
    long count = from.byteSize() / dtype.bytes();
    switch (dtype) {
      case FP32, TF32 -> MemorySegment.copy(from, 0, to, 0, from.byteSize());
      case BF16 -> {
        for (long i = 0; i < count; i++) {
          to.setAtIndex(
              ValueLayout.JAVA_INT, i, from.getAtIndex(ValueLayout.JAVA_SHORT_UNALIGNED, i) << 16);
        }
      }
      case FP16, FP8_E4M3, FP8_E5M2 -> {
        for (long i = 0; i < count; i++) {
          to.setAtIndex(ValueLayout.JAVA_FLOAT, i, dtype.load(from, i));
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
    for (long i = 0; i < count; i++) {
      dtype.store(to, i, from.getAtIndex(ValueLayout.JAVA_FLOAT, i));
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
