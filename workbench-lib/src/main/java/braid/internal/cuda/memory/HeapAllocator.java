package braid.internal.cuda.memory;

import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;

/// Allocates from a symmetric heap. Ranks that allocate and release the same sizes in the same
/// order get the same offsets without communication.
final class HeapAllocator {
  /// Alignment of NCCL's windows, the strictest user.
  static final long ALIGNMENT_BYTES = 4096;

  private final long bytes;

  /// Sizes of the allocations by offset.
  private final TreeMap<Long, Long> taken = new TreeMap<>();

  HeapAllocator(long bytes) {
    this.bytes = bytes;
  }

  /// Allocates at the lowest offset with enough room; empty if there is none.
  OptionalLong allocate(long requested) {
    long size = aligned(Math.max(requested, 1));
    long offset = 0;
    for (Map.Entry<Long, Long> each : taken.entrySet()) {
      if (each.getKey() - offset >= size) {
        break;
      }
      offset = each.getKey() + each.getValue();
    }
    if (bytes - offset < size) {
      return OptionalLong.empty();
    }
    taken.put(offset, size);
    return OptionalLong.of(offset);
  }

  void release(long offset) {
    if (taken.remove(offset) == null) {
      throw new IllegalStateException("no allocation at offset " + offset);
    }
  }

  /// Bytes not allocated, possibly in several gaps.
  long free() {
    return bytes - taken.values().stream().mapToLong(Long::longValue).sum();
  }

  private static long aligned(long size) {
    return (size + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
  }
}
