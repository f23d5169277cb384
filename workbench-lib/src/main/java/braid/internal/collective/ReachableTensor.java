package braid.internal.collective;

import braid.internal.resource.Attachment;
import braid.model.DType;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import java.util.function.IntFunction;

/// A symmetric tensor, as this rank reaches it.
///
/// @param elements number of elements per rank
/// @param parts each rank's part
/// @param attachment data that the memory kind keeps with the tensor
public record ReachableTensor(
    DType dtype, long elements, IntFunction<MemorySegment> parts, Optional<Attachment> attachment) {
  /// Returns the part of one rank.
  MemorySegment on(int rank) {
    return parts.apply(rank).asSlice(0, elements * dtype.bytes());
  }
}
