package braid.internal.collective;

import braid.DType;
import braid.internal.work.Matrix;
import java.lang.foreign.MemorySegment;
import java.util.function.IntFunction;

/// A tensor of all ranks, as this rank reaches it.
///
/// @param parts each rank's part
public record Shared(DType dtype, long elements, IntFunction<MemorySegment> parts) {
  Elements all() {
    return new Elements(0, elements);
  }

  MemorySegment of(int rank, Elements some) {
    return parts.apply(rank).asSlice(some.start() * dtype.bytes(), some.length() * dtype.bytes());
  }

  /// The same as one row of numbers.
  Matrix row(int rank, Elements some) {
    return Matrix.of(of(rank, some), dtype, 1, Math.toIntExact(some.length()));
  }
}
