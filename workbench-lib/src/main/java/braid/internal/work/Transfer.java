package braid.internal.work;

import java.lang.foreign.MemorySegment;

/// A copy of bytes: rows that begin a pitch apart on either side, or one row of all bytes.
public record Transfer(
    MemorySegment from, long fromPitch, MemorySegment to, long toPitch, long rowBytes, long rows) {
  public Transfer {
    if (rows > 1 && (fromPitch < rowBytes || toPitch < rowBytes)) {
      throw new IllegalArgumentException(
          "a pitch must be at least a row of %d bytes but they were %d and %d"
              .formatted(rowBytes, fromPitch, toPitch));
    }
  }

  /// Copies all bytes of a segment contiguously.
  public static Transfer of(MemorySegment from, MemorySegment to) {
    return new Transfer(from, from.byteSize(), to, to.byteSize(), from.byteSize(), 1);
  }

  /// Copies a matrix to one of the same shape, type and storage order.
  public static Transfer of(Matrix from, Matrix to) {
    var source = from.asStored();
    var target = to.asStored();
    if (from.transposed() != to.transposed()
        || from.dtype() != to.dtype()
        || source.rows() != target.rows()
        || source.columns() != target.columns()) {
      throw new IllegalArgumentException("not stored alike: %s, %s".formatted(from, to));
    }
    int each = from.dtype().bytes();
    long rowBytes = (long) source.columns() * each;
    boolean together = source.stride() == source.columns() && target.stride() == target.columns();
    long bytes = source.rows() * rowBytes;
    return together || bytes == 0
        ? of(source.segment().asSlice(0, bytes), target.segment().asSlice(0, bytes))
        : new Transfer(
            source.segment(),
            (long) source.stride() * each,
            target.segment(),
            (long) target.stride() * each,
            rowBytes,
            source.rows());
  }

  public long bytes() {
    return rows * rowBytes;
  }

  public boolean isOnePiece() {
    return rows == 1;
  }

  /// Part `index` of `parts`, of nearly equal numbers of rows, or of bytes if there is one row.
  public Transfer part(int parts, int index) {
    long all = isOnePiece() ? rowBytes : rows;
    long start = all / parts * index;
    long length = index == parts - 1 ? all - start : all / parts;
    return isOnePiece()
        ? of(from.asSlice(start, length), to.asSlice(start, length))
        : new Transfer(
            from.asSlice(length == 0 ? 0 : start * fromPitch),
            fromPitch,
            to.asSlice(length == 0 ? 0 : start * toPitch),
            toPitch,
            rowBytes,
            length);
  }

  /// Copies within the host's memory.
  public void move() {
    for (long row = 0; row < rows; row++) {
      MemorySegment.copy(from, row * fromPitch, to, row * toPitch, rowBytes);
    }
  }
}
