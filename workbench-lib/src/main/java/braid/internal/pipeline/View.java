package braid.internal.pipeline;

import braid.internal.work.Matrix;
import braid.model.DType;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// A part of a plan as users see it: memory, type and shape as stored.
public record View(MemorySegment memory, DType dtype, List<Long> shape) {
  /// Returns a view of a contiguous matrix.
  static View of(Matrix matrix) {
    long rows = matrix.rows();
    long columns = matrix.columns();
    return new View(
        matrix.segment().asSlice(0, rows * columns * matrix.dtype().bytes()),
        matrix.dtype(),
        matrix.transposed() ? List.of(columns, rows) : List.of(rows, columns));
  }

  static View line(MemorySegment memory, DType dtype) {
    return new View(memory, dtype, List.of(memory.byteSize() / dtype.bytes()));
  }
}
