package braid.internal.resource;

import braid.model.BraidException;
import braid.model.MemoryKind;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;
import java.util.stream.LongStream;

/// The same number of bytes on every member of a group, all of them within reach of each.
///
/// @param parts one a member, each of as many bytes as were asked for
/// @param whole all parts side by side without gaps, where the kind has them so
/// @param inPieces why there is no `whole`, and what to do about it; empty where there is
/// @param attachment what the kind keeps with it
/// @param free takes it out of this rank's reach; what comes from a pool goes back to it
/// @param discard the same where others may still write to it, so that it is not used again
public record SymmetricMemory(
    List<MemorySegment> parts,
    Optional<MemorySegment> whole,
    String inPieces,
    Optional<Attachment> attachment,
    Runnable free,
    Runnable discard)
    implements AutoCloseable {
  /// Where it comes from.
  public interface Allocator {
    /// Allocates `bytesPerRank` on every member, mapped into each. All members call it together; a
    /// member's part is zeroed. Where it fails on one it fails on all, with [AllocationFailed].
    SymmetricMemory allocate(
        MemoryKind kind, String label, long bytesPerRank, Rendezvous rendezvous);

    /// Zeroes all members' parts, and has done so when it returns; nobody else may be using them.
    void zero(SymmetricMemory memory);
  }

  public SymmetricMemory {
    parts = List.copyOf(parts);
  }

  /// Memory that is not pooled, of parts that lie side by side.
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

  /// Memory that is not pooled, of parts that lie anywhere; who asks for the whole is told why
  /// there is none.
  public static SymmetricMemory inPieces(
      List<MemorySegment> parts, String inPieces, Runnable free) {
    return new SymmetricMemory(parts, Optional.empty(), inPieces, Optional.empty(), free, free);
  }

  /// The same with what the kind keeps with it.
  public SymmetricMemory with(Attachment kept) {
    return new SymmetricMemory(parts, whole, inPieces, Optional.of(kept), free, discard);
  }

  /// What each member has.
  public long bytesPerRank() {
    return parts.getFirst().byteSize();
  }

  /// That member's part.
  public MemorySegment on(int rank) {
    return parts.get(rank);
  }

  /// All parts side by side.
  public MemorySegment all() {
    return whole.orElseThrow(() -> new BraidException(inPieces));
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
