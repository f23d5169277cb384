package braid.internal.collective;

import braid.DType;
import braid.internal.resource.Attachment;
import braid.internal.work.Matrix;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import java.util.function.IntFunction;

/// A tensor of all ranks, as this rank reaches it.
///
/// @param parts each rank's part
/// @param attachment what the kind of memory keeps with it
public record Shared(
    DType dtype, long elements, IntFunction<MemorySegment> parts, Optional<Attachment> attachment) {
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
