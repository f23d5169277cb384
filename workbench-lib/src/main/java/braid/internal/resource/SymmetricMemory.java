package braid.internal.resource;

import braid.MemoryKind;
import java.lang.foreign.MemorySegment;

/// The same number of bytes on every member of a group, all of them within reach of each: member
/// r's part begins at r × `bytesPerRank` of `all`.
///
/// @param free takes it out of this rank's reach; what comes from a pool goes back to it
/// @param discard the same where others may still write to it, so that it is not used again
public record SymmetricMemory(MemorySegment all, long bytesPerRank, Runnable free, Runnable discard)
    implements AutoCloseable {
  /// Where it comes from.
  public interface Source {
    /// Allocates `bytesPerRank` on every member, mapped into each. All members call it together; a
    /// member's part is zeroed. Where it fails on one it fails on all, with [AllocationFailed].
    SymmetricMemory allocate(
        MemoryKind kind, String label, long bytesPerRank, Rendezvous rendezvous);

    /// Zeroes all members' parts; nobody else may be using them.
    void zero(SymmetricMemory memory);
  }

  /// Memory that is not pooled, where both are one.
  public SymmetricMemory(MemorySegment all, long bytesPerRank, Runnable free) {
    this(all, bytesPerRank, free, free);
  }

  /// That member's part.
  public MemorySegment on(int rank) {
    return all.asSlice(rank * bytesPerRank, bytesPerRank);
  }

  /// Ends it for a user that broke off: the members may be at different steps, so that one of them
  /// still writes what the next user would take for its own. A close after it does nothing.
  public void spoil() {
    discard.run();
  }

  /// Takes the memory out of this rank's reach. The other members keep what they have mapped.
  @Override
  public void close() {
    free.run();
  }
}
