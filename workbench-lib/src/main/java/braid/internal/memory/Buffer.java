package braid.internal.memory;

import braid.internal.resource.SymmetricMemory;
import braid.model.MemoryKind;

/// A piece of symmetric memory that is handed out again and again. The `number` names it among
/// those of its board, the same on every rank; its generation counts how often the number was
/// handed out.
record Buffer(MemoryKind kind, SymmetricMemory memory, Board board, int number) {
  /// Where the board has no number left: such a buffer is freed when it is closed.
  static final int UNNUMBERED = -1;

  boolean fits(MemoryKind asked, long bytesPerRank) {
    return kind == asked && memory.bytesPerRank() == bytesPerRank;
  }

  void free() {
    memory.close();
  }
}
