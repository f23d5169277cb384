package braid.internal.resource;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// Ends the views of one owner together while the memory itself goes on to the next owner. Without
/// it a view that outlives its owner would read, or overwrite, numbers of the next one.
public final class Lifetime implements AutoCloseable {
  private final Arena arena = Arena.ofShared();

  /// Returns a view of the memory that is accessible until this lifetime ends.
  @SuppressWarnings("restricted") // The memory's owner frees it after the lifetimes of its views.
  public MemorySegment of(MemorySegment memory) {
    return memory.reinterpret(arena, null);
  }

  /// Ends all views. Idempotent. Throws while native code uses one of them, and can then be tried
  /// again.
  @Override
  public void close() {
    if (arena.scope().isAlive()) {
      arena.close();
    }
  }
}
