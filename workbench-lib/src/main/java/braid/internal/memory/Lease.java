package braid.internal.memory;

import braid.internal.resource.Lifetime;
import braid.internal.resource.SymmetricMemory;

/// A buffer in somebody's hands: views of memory that end when it is given back, though the memory
/// stays mapped. Else who still had a view would read what the next one writes.
final class Lease {
  /// What becomes of the buffer.
  @FunctionalInterface
  interface End {
    void of(boolean spoiled);
  }

  private final Lifetime lifetime = new Lifetime();
  private final SymmetricMemory memory;
  private final End end;
  private boolean over;

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

  /// The buffer from its first byte on, for as long as the lease lasts.
  SymmetricMemory memory() {
    return memory;
  }

  /// Once; it fails, and can be tried again, while native code is at work on the memory.
  private synchronized void end(boolean spoiled) {
    if (!over) {
      lifetime.close();
      over = true;
      end.of(spoiled);
    }
  }
}
