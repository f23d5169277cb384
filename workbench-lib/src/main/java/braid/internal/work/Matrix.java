package braid.internal.work;

import braid.model.DType;
import java.lang.foreign.MemorySegment;

/// A matrix as multiplications read and write it. If `transposed`, it is stored by columns:
/// `columns` stored rows of `rows` numbers each. Stored rows begin `stride` numbers apart.
public record Matrix(
    MemorySegment segment, DType dtype, int rows, int columns, int stride, boolean transposed) {
  public Matrix {
    int storedRows = transposed ? columns : rows;
    int storedColumns = transposed ? rows : columns;
    long bytes =
        storedRows == 0 || storedColumns == 0
            ? 0
            : ((long) (storedRows - 1) * stride + storedColumns) * dtype.bytes();
    if (stride < storedColumns || segment.byteSize() < bytes) {
      throw new IllegalArgumentException(
          "a matrix of %d x %d %s, %d apart, needs %d bytes but has %d"
              .formatted(rows, columns, dtype, stride, bytes, segment.byteSize()));
    }
  }

  /// A matrix without gaps, stored by rows.
  public static Matrix of(MemorySegment segment, DType dtype, int rows, int columns) {
    return new Matrix(segment, dtype, rows, columns, columns, false);
  }

  /// A matrix without gaps, stored by columns.
  public static Matrix transposed(MemorySegment segment, DType dtype, int rows, int columns) {
    return new Matrix(segment, dtype, rows, columns, rows, true);
  }

  /// View of some rows.
  public Matrix rows(int start, int count) {
    if (start < 0 || count < 0 || start + count > rows) {
      throw new IllegalArgumentException(
          "rows %d..%d of %d".formatted(start, start + count - 1, rows));
    }
    long skipped = (transposed ? (long) start : (long) start * stride) * dtype.bytes();
    return new Matrix(
        count == 0 ? segment.asSlice(0, 0) : segment.asSlice(skipped),
        dtype,
        count,
        columns,
        stride,
        transposed);
  }

  /// The stored rows as a matrix that is not transposed.
  public Matrix asStored() {
    return transposed
        ? new Matrix(segment, dtype, /* rows= */ columns, /* columns= */ rows, stride, false)
        : this;
  }

  /// View of the same shape, `storedRows` stored rows further on in memory.
  Matrix shifted(int storedRows) {
    return new Matrix(
        segment.asSlice((long) storedRows * stride * dtype.bytes()),
        dtype,
        rows,
        columns,
        stride,
        transposed);
  }

  /// Returns whether it is stored by rows without gaps.
  public boolean isContiguous() {
    return !transposed && (stride == columns || rows <= 1);
  }

  /// Number of bytes of its numbers.
  public long size() {
    return (long) rows * columns * dtype.bytes();
  }

  /// Memory of the matrix, which must be stored by rows without gaps.
  public MemorySegment bytes() {
    if (!isContiguous()) {
      throw new IllegalStateException("not in one piece: " + this);
    }
    return segment.asSlice(0, size());
  }
}
