package braid.internal.shared;

import braid.internal.resource.SymmetricMemory;
import java.lang.foreign.MemorySegment;

/// Host memory by which the members of a group see each other's words. On one host they share it.
/// On several, every member has a copy of all parts, and what a member writes is published: its own
/// part to all members, a word in another's part to that member. A member's writes arrive in their
/// order.
///
/// @param self number of this member, whose part is its own
public record ControlMemory(SymmetricMemory memory, int self, Publisher publisher)
    implements AutoCloseable {
  /// Sends writes to copies of the memory.
  public interface Publisher {
    /// A publisher of memory that all members share.
    Publisher NONE =
        new Publisher() {
          @Override
          public void raise(int part, long offset, int epoch, int step) {}

          @Override
          public void store(long offset, MemorySegment bytes) {}
        };

    /// Sends the value of a signal.
    void raise(int part, long offset, int epoch, int step);

    /// Sends bytes of this member's part to all members.
    void store(long offset, MemorySegment bytes);
  }

  /// Memory that all members share.
  public static ControlMemory shared(SymmetricMemory memory, int self) {
    return new ControlMemory(memory, self, Publisher.NONE);
  }

  /// Returns a member's part.
  public MemorySegment part(int member) {
    return memory.on(member);
  }

  /// Raises a signal in a member's part.
  public void raise(int member, long offset, int epoch, int step) {
    SignalWord.raise(memory.on(member), offset, epoch, step);
    publisher.raise(member, offset, epoch, step);
  }

  /// Publishes bytes that this member has written to its own part. Readers see the first word last,
  /// and 0 in it meanwhile.
  public void publish(long offset, long bytes) {
    publisher.store(offset, memory.on(self).asSlice(offset, bytes));
  }

  @Override
  public void close() {
    memory.close();
  }
}
