package braid.internal.resource;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// Ends the views of one owner together while the memory itself goes on to the next owner. Without
/// it a view that outlives its owner would read, or overwrite, numbers of the next one.
public final class Lifetime implements AutoCloseable {
  private final Arena arena = Arena.ofShared();

  /// The same memory, reachable until this lifetime ends.
  @SuppressWarnings("restricted") // Who owns the memory frees it after the lifetimes of its views.
  public MemorySegment of(MemorySegment memory) {
    return memory.reinterpret(arena, null);
  }

  /// Ends all views. Twice is harmless; it fails, and can be tried again, while native code is at
  /// work on one of them.
  @Override
  public void close() {
    if (arena.scope().isAlive()) {
      arena.close();
    }
  }
}
