package braid.internal.resource;

import java.lang.foreign.MemorySegment;

/// Memory of this rank alone.
public record PrivateMemory(MemorySegment segment, Runnable free) implements AutoCloseable {
  @Override
  public void close() {
    free.run();
  }
}
