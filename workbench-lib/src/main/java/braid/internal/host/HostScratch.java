package braid.internal.host;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// Scratch memory of one stream, which grows with the largest operation so far.
final class HostScratch implements AutoCloseable {
  private static final long ALIGNMENT_BYTES = 64;

  private Arena arena = Arena.ofShared();
  private MemorySegment memory = MemorySegment.NULL;
  private long used;

  /// Begins an operation, which takes at most `bytes` in all. Memory taken before is reused.
  HostScratch begin(long bytes) {
    if (memory.byteSize() < bytes) {
      arena.close();
      arena = Arena.ofShared();
      memory = arena.allocate(bytes, ALIGNMENT_BYTES);
    }
    used = 0;
    return this;
  }

  MemorySegment take(long bytes) {
    var piece = memory.asSlice(used, bytes);
    used += roundUp(bytes);
    return piece;
  }

  static long roundUp(long bytes) {
    return (bytes + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
  }

  @Override
  public void close() {
    arena.close();
  }
}
