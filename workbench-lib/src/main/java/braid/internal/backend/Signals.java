package braid.internal.backend;

import braid.internal.resource.SymmetricMemory;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Words by which ranks signal their progress. Every member holds `slots` of them in symmetric
/// memory; each is raised by one other member and waited for by its holder, here `self`. `ranks`
/// are the members' ranks in the world.
public record Signals(SymmetricMemory memory, List<Integer> ranks, int self, int slots)
    implements AutoCloseable {
  /// A cache line per word, so that raising one does not slow a wait for its neighbor.
  private static final int BYTES_PER_SLOT = 64;

  /// Bytes per member for that number of slots.
  public static long bytes(int slots) {
    return (long) slots * BYTES_PER_SLOT;
  }

  /// Returns a member's word, mapped into this rank: [#BYTES_PER_SLOT] bytes, the first 8 for its
  /// value.
  public MemorySegment word(int rank, int slot) {
    if (slot < 0 || slot >= slots) {
      throw new IllegalArgumentException("slot must be 0.." + (slots - 1) + " but was " + slot);
    }
    return memory.on(rank).asSlice((long) slot * BYTES_PER_SLOT, BYTES_PER_SLOT);
  }

  @Override
  public void close() {
    memory.close();
  }
}
