package braid.internal.cuda.memory;

import braid.internal.resource.SymmetricMemory;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Memory whose parts lie where the driver put them.
final class Parts {
  private Parts() {}

  /// One part alone lies side by side with itself.
  static SymmetricMemory anywhere(List<MemorySegment> parts, String kind, Runnable free) {
    return parts.size() == 1
        ? SymmetricMemory.sideBySide(parts.getFirst(), parts.getFirst().byteSize(), free)
        : SymmetricMemory.inPieces(
            parts,
            "memory kind %s has no view of all ranks' parts in one piece; use on(rank), or memory(NATIVE)"
                .formatted(kind),
            free);
  }
}
