package braid.internal.memory;

import braid.internal.resource.SymmetricMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// A buffer in somebody's hands: views of memory that end when it is given back, though the memory
/// stays mapped. Else who still had a view would read what the next one writes.
final class Lease {
  /// What becomes of the buffer.
  @FunctionalInterface
  interface End {
    void of(boolean spoiled);
  }

  private final Arena arena = Arena.ofShared();
  private final MemorySegment all;
  private final End end;
  private boolean over;

  @SuppressWarnings("restricted") // The pool unmaps a buffer only when nobody holds it.
  Lease(SymmetricMemory memory, End end) {
    this.all = memory.all().reinterpret(arena, null);
    this.end = end;
  }

  MemorySegment all() {
    return all;
  }

  /// Once; it fails, and can be tried again, while native code is at work on the memory.
  synchronized void end(boolean spoiled) {
    if (!over) {
      arena.close();
      over = true;
      end.of(spoiled);
    }
  }
}
