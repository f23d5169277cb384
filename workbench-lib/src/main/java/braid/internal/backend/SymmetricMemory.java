package braid.internal.backend;

import java.lang.foreign.MemorySegment;

/// The same number of bytes on every member of a group, all of them within reach of each: member
/// r's part begins at r × `bytesPerRank` of `all`.
public record SymmetricMemory(MemorySegment all, long bytesPerRank, Runnable free)
    implements AutoCloseable {
  /// That member's part.
  public MemorySegment on(int rank) {
    return all.asSlice(rank * bytesPerRank, bytesPerRank);
  }

  /// Takes the memory out of this rank's reach. The other members keep what they have mapped.
  @Override
  public void close() {
    free.run();
  }
}
