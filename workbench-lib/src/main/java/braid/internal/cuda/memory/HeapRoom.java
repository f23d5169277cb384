package braid.internal.cuda.memory;

import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;

/// Room in a heap that all ranks have alike: who takes and gives back the same in the same order
/// gets the same places, so no rank need ask another.
final class HeapRoom {
  /// As strict as the strictest user: NCCL's windows and vector copies.
  static final long ALIGNMENT_BYTES = 4096;

  private final long bytes;

  /// Bytes of what is taken, by place.
  private final TreeMap<Long, Long> taken = new TreeMap<>();

  HeapRoom(long bytes) {
    this.bytes = bytes;
  }

  /// The first place with so much room.
  OptionalLong take(long wanted) {
    long size = aligned(Math.max(wanted, 1));
    long place = 0;
    for (Map.Entry<Long, Long> each : taken.entrySet()) {
      if (each.getKey() - place >= size) {
        break;
      }
      place = each.getKey() + each.getValue();
    }
    if (bytes - place < size) {
      return OptionalLong.empty();
    }
    taken.put(place, size);
    return OptionalLong.of(place);
  }

  void giveBack(long place) {
    if (taken.remove(place) == null) {
      throw new IllegalStateException("nothing is at " + place);
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
