package braid.internal.memory;

import braid.internal.resource.SymmetricMemory;
import braid.model.MemoryKind;

/// Symmetric memory that a [BufferPool] lends repeatedly. The `number` identifies it on its board
/// and is the same on every rank; its generation counts how often it was lent.
record PooledBuffer(MemoryKind kind, SymmetricMemory memory, Board board, int number) {
  /// The number of a buffer for which the board has none left: it is freed when it is closed.
  static final int UNNUMBERED = -1;

  boolean fits(MemoryKind requested, long bytesPerRank) {
    return kind == requested && memory.bytesPerRank() == bytesPerRank;
  }

  void free() {
    memory.close();
  }
}
