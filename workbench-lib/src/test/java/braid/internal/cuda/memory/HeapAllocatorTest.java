package braid.internal.cuda.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.OptionalLong;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class HeapAllocatorTest {
  private static final long UNIT = HeapAllocator.ALIGNMENT_BYTES;

  @Test
  void allocatesTheFirstGapThatFits() {
    var heap = new HeapAllocator(4 * UNIT);
    assertThat(heap.allocate(1)).hasValue(0);
    assertThat(heap.allocate(2 * UNIT)).hasValue(UNIT);
    assertThat(heap.allocate(UNIT)).hasValue(3 * UNIT);
    assertThat(heap.allocate(1)).isEmpty();
    heap.release(UNIT);
    assertThat(heap.free()).isEqualTo(2 * UNIT);
    assertThat(heap.allocate(UNIT)).hasValue(UNIT);
    assertThat(heap.allocate(2 * UNIT)).isEmpty();
    assertThat(heap.allocate(UNIT)).hasValue(2 * UNIT);
  }

  @Test
  void releasingTwiceIsAnError() {
    var heap = new HeapAllocator(UNIT);
    heap.allocate(1);
    heap.release(0);
    assertThatThrownBy(() -> heap.release(0)).hasMessageContaining("no allocation at offset 0");
  }

  @Test
  void theSameOrderGetsTheSameOffsetsWithoutOverlap() {
    var seed = 42L;
    assertThat(offsets(seed)).isEqualTo(offsets(seed));
  }

  private static List<OptionalLong> offsets(long seed) {
    var random = new SplittableRandom(seed);
    var heap = new HeapAllocator(64 * UNIT);
    var allocated = new HashMap<Long, Long>();
    var offsets = new ArrayList<OptionalLong>();
    for (int i = 0; i < 1000; i++) {
      if (random.nextBoolean() || allocated.isEmpty()) {
        long bytes = random.nextLong(1, 8 * UNIT);
        var offset = heap.allocate(bytes);
        offsets.add(offset);
        offset.ifPresent(
            at -> {
              allocated.forEach(
                  (other, size) ->
                      assertThat(at + bytes <= other || other + size <= at)
                          .as("%d bytes at %d beside %d at %d", bytes, at, size, other)
                          .isTrue());
              allocated.put(at, bytes);
            });
      } else {
        long one =
            allocated.keySet().stream()
                .sorted()
                .skip(random.nextInt(allocated.size()))
                .findFirst()
                .orElseThrow();
        allocated.remove(one);
        heap.release(one);
      }
    }
    return offsets;
  }
}
