package braid.internal.cuda.memory;

import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// One kind of symmetric memory. A failure on one rank is undone and thrown on all, so that the
/// allocation can be tried again.
interface CudaMemoryKind extends AutoCloseable {
  /// Allocates zeroed memory on every member. Collective: all members call it together.
  SymmetricMemory allocate(String label, long bytesPerRank, Rendezvous rendezvous);

  /// Returns memory whose parts lie where the driver put them. A single part is its own whole.
  static SymmetricMemory scattered(List<MemorySegment> parts, String kind, Runnable free) {
    return parts.size() == 1
        ? SymmetricMemory.sideBySide(parts.getFirst(), parts.getFirst().byteSize(), free)
        : SymmetricMemory.inPieces(
            parts,
            "memory kind %s has no view of all ranks' parts in one piece; use on(rank), or memory(NATIVE)"
                .formatted(kind),
            free);
  }

  @Override
  void close();
}
