package braid.internal.cuda.memory;

import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;

/// Room in a heap that all ranks have alike: who takes and gives back the same in the same order
/// gets the same places, so no rank need ask another.
final class HeapAllocator {
  /// As strict as the strictest user: NCCL's windows and vector copies.
  static final long ALIGNMENT_BYTES = 4096;

  private final long bytes;

  /// Bytes of what is taken, by place.
  private final TreeMap<Long, Long> taken = new TreeMap<>();

  HeapAllocator(long bytes) {
    this.bytes = bytes;
  }

  /// The first place with so much room.
  OptionalLong take(long requested) {
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

  void giveBack(long offset) {
    if (taken.remove(offset) == null) {
      throw new IllegalStateException("nothing is at " + offset);
    }
  }

  /// What is not taken, in however many pieces.
  long free() {
    return bytes - taken.values().stream().mapToLong(Long::longValue).sum();
  }

  private static long aligned(long size) {
    return (size + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
  }
}
