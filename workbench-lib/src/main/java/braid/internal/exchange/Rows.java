package braid.internal.exchange;

import braid.DType;
import braid.internal.work.Matrix;
import java.lang.foreign.MemorySegment;

/// How rows that are exchanged lie in memory.
public record Rows(DType dtype, int columns) {
  public long bytes(int rows) {
    return (long) rows * columns * dtype.bytes();
  }

  /// Those rows of what begins with row 0 there.
  public MemorySegment of(MemorySegment memory, Slice rows) {
    return memory.asSlice(bytes(rows.start()), bytes(rows.length()));
  }

  public Matrix matrix(MemorySegment memory, Slice rows) {
    return Matrix.of(of(memory, rows), dtype, rows.length(), columns);
  }
}
