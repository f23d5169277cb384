package braid.internal.resource;

import braid.model.BraidException;
import braid.model.MemoryKind;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;
import java.util.stream.LongStream;

/// The same number of bytes on every member of a group, mapped into each of them.
///
/// @param parts one per member, each of the requested size
/// @param whole all parts side by side without gaps, if the kind lays them out so
/// @param inPieces reason why `whole` is missing, with a remedy; empty if it is present
/// @param attachment state that the kind keeps with the memory
/// @param free unmaps the memory on this rank, or returns it to its pool
/// @param discard as `free`, but the memory is not reused, since other ranks may still write to it
public record SymmetricMemory(
    List<MemorySegment> parts,
    Optional<MemorySegment> whole,
    String inPieces,
    Optional<Attachment> attachment,
    Runnable free,
    Runnable discard)
    implements AutoCloseable {
  /// Allocates symmetric memory.
  public interface Allocator {
    /// Allocates `bytesPerRank` zeroed bytes on every member, mapped into each. Collective: all
    /// members call it together. A failure on one member is an [AllocationFailed] on all.
    SymmetricMemory allocate(
        MemoryKind kind, String label, long bytesPerRank, Rendezvous rendezvous);

    /// Returns the memory that members allocate from, for symmetric buffers of a kind and for
    /// private ones, as far as this member sees it.
    ///
    /// @param ranks the members' ranks in the world
    List<FreeSpace> freeSpaces(MemoryKind kind, List<Integer> ranks);

    /// Zeroes this member's part before it returns. No other work may use it.
    void zero(MemorySegment part);
  }

  public SymmetricMemory {
    parts = List.copyOf(parts);
  }

  /// Memory outside a pool whose parts lie side by side.
  public static SymmetricMemory sideBySide(MemorySegment all, long bytesPerRank, Runnable free) {
    return new SymmetricMemory(
        LongStream.range(0, all.byteSize() / bytesPerRank)
            .mapToObj(rank -> all.asSlice(rank * bytesPerRank, bytesPerRank))
            .toList(),
        Optional.of(all),
        "",
        Optional.empty(),
        free,
        free);
  }

  /// Memory outside a pool whose parts lie anywhere; [#all] throws `inPieces`.
  public static SymmetricMemory inPieces(
      List<MemorySegment> parts, String inPieces, Runnable free) {
    return new SymmetricMemory(parts, Optional.empty(), inPieces, Optional.empty(), free, free);
  }

  /// Returns the same memory with an attachment.
  public SymmetricMemory with(Attachment kept) {
    return new SymmetricMemory(parts, whole, inPieces, Optional.of(kept), free, discard);
  }

  /// Size of each member's part.
  public long bytesPerRank() {
    return parts.getFirst().byteSize();
  }

  /// Part of a member.
  public MemorySegment on(int rank) {
    return parts.get(rank);
  }

  /// All parts side by side. Throws if they are not.
  public MemorySegment all() {
    return whole.orElseThrow(() -> new BraidException(inPieces));
  }

  /// Discards the memory after a failure: members may be at different steps, and one of them may
  /// still write to it. A later close does nothing.
  public void spoil() {
    discard.run();
  }

  /// Unmaps the memory on this rank. The other members keep their mappings.
  @Override
  public void close() {
    free.run();
  }
}
