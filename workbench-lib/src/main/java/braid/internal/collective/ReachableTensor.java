package braid.internal.collective;

import braid.internal.resource.Attachment;
import braid.model.DType;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import java.util.function.IntFunction;

/// A tensor of all ranks, as this rank reaches it.
///
/// @param elements of each rank's part
/// @param parts each rank's part
/// @param attachment what the kind of memory keeps with it
public record ReachableTensor(
    DType dtype, long elements, IntFunction<MemorySegment> parts, Optional<Attachment> attachment) {
  /// A rank's part.
  MemorySegment on(int rank) {
    return parts.apply(rank).asSlice(0, elements * dtype.bytes());
  }
}
