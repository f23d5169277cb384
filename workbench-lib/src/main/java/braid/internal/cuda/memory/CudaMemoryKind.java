package braid.internal.cuda.memory;

import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// One kind of symmetric memory. What fails on one rank is undone on all and fails on all, so that
/// it can be tried again.
interface CudaMemoryKind extends AutoCloseable {
  /// Memory on every member, each part zeroed; all members call it together.
  SymmetricMemory allocate(String label, long bytesPerRank, Rendezvous rendezvous);

  /// Memory whose parts lie where the driver put them; a single part is its own whole.
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
