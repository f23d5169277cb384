package braid.internal.memory;

import braid.internal.resource.Lifetime;
import braid.internal.resource.SymmetricMemory;

/// A lent buffer: views of its memory that end when it is returned, though the memory stays mapped.
/// Otherwise a stale view would read the data of the next lease.
final class Lease {
  /// Returns the buffer to its pool.
  @FunctionalInterface
  interface End {
    void of(boolean spoiled);
  }

  private final Lifetime lifetime = new Lifetime();
  private final SymmetricMemory memory;
  private final End end;
  private boolean ended;

  Lease(SymmetricMemory buffer, End end) {
    this.memory =
        new SymmetricMemory(
            buffer.parts().stream().map(lifetime::of).toList(),
            buffer.whole().map(lifetime::of),
            buffer.inPieces(),
            buffer.attachment(),
            () -> end(false),
            () -> end(true));
    this.end = end;
  }

  /// Returns the memory, valid until the lease ends.
  SymmetricMemory memory() {
    return memory;
  }

  /// Ends the lease, once. Fails, and can be retried, while native code uses the memory.
  private synchronized void end(boolean spoiled) {
    if (!ended) {
      lifetime.close();
      ended = true;
      end.of(spoiled);
    }
  }
}
