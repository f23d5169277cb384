package braid.internal.cuda.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.cuda.ThreadMembers;
import braid.internal.cuda.memory.HeapAllocator.Gap;
import braid.internal.resource.AllocationFailed;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class HeapAllocatorTest {
  private static final long UNIT = HeapAllocator.ALIGNMENT_BYTES;
  private static final List<Integer> WORLD = List.of(0, 1, 2);

  private final List<HeapAllocator> heaps =
      IntStream.range(0, 3).mapToObj(_ -> new HeapAllocator(4 * UNIT)).toList();

  /// Allocates on the members of a group, which are threads, and returns their common offset.
  private long allocate(long bytes, Integer... group) {
    return allocate(heaps, bytes, List.of(group));
  }

  private static long allocate(List<HeapAllocator> heaps, long bytes, List<Integer> group) {
    var offsets =
        ThreadMembers.run(
            group, (rank, rendezvous) -> heaps.get(rank).allocate("x", bytes, rendezvous, _ -> {}));
    assertThat(offsets).containsOnly(offsets.getFirst());
    return offsets.getFirst();
  }

  private void release(long offset, Integer... ranks) {
    for (int rank : ranks) {
      heaps.get(rank).release(offset);
    }
  }

  @Test
  void allocatesTheFirstGapThatFits() {
    assertThat(allocate(1, 0, 1, 2)).isZero();
    assertThat(allocate(2 * UNIT, 0, 1, 2)).isEqualTo(UNIT);
    assertThat(allocate(UNIT, 0, 1, 2)).isEqualTo(3 * UNIT);
    release(UNIT, 0, 1, 2);
    assertThat(allocate(UNIT, 0, 1, 2)).isEqualTo(UNIT);
    assertThat(allocate(UNIT, 0, 1, 2)).isEqualTo(2 * UNIT);
  }

  @Test
  void groupsWithACommonRankGetDifferentMemory() {
    assertThat(allocate(UNIT, 0, 1)).isZero();
    assertThat(allocate(UNIT, 1, 2)).isEqualTo(UNIT);
    // Free on both, though rank 0 has more.
    assertThat(allocate(UNIT, 0, 2)).isEqualTo(2 * UNIT);
    assertThat(allocate(UNIT, 0, 1, 2)).isEqualTo(3 * UNIT);
  }

  @Test
  void groupsWithoutACommonRankMayGetTheSameOffset() {
    assertThat(allocate(UNIT, 0, 1)).isZero();
    assertThat(allocate(UNIT, 2)).isZero();
  }

  /// Rank 1 has not released the memory of ranks 0 and 1, so it may still write to rank 0.
  @Test
  void releasedMemoryWaitsForAllRanksOfItsGroup() {
    long ofPair = allocate(UNIT, 0, 1);
    release(ofPair, 0);
    assertThat(allocate(UNIT, 0, 2)).isNotEqualTo(ofPair);
    assertThat(allocate(UNIT, 0)).isNotEqualTo(ofPair);
    release(ofPair, 1);
    assertThat(allocate(UNIT, 0, 2)).as("a group without rank 1").isNotEqualTo(ofPair);
    assertThat(allocate(UNIT, 0, 1)).as("the same ranks").isEqualTo(ofPair);
  }

  @Test
  void memoryIsReleasedOnlyAfterTheLastRankOfItsGroup() {
    long ofPair = allocate(4 * UNIT, 0, 1);
    release(ofPair, 0);
    assertThatThrownBy(() -> allocate(UNIT, 0, 1, 2)).isInstanceOf(AllocationFailed.class);
    release(ofPair, 1);
    assertThat(allocate(UNIT, 0, 1, 2)).isEqualTo(ofPair);
  }

  @Test
  void aFullHeapIsNamedWithTheCommonRoom() {
    allocate(UNIT, 0, 1);
    allocate(2 * UNIT, 2);
    assertThatThrownBy(() -> allocate(3 * UNIT, 0, 1, 2))
        .isInstanceOf(AllocationFailed.class)
        .hasMessage(
            "x needs 12288 bytes of NVSHMEM's heap where 8192 are free in one piece on all ranks;"
                + " close what is not needed, or set BRAID_NVSHMEM_HEAP_MIB higher");
  }

  @Test
  void aFailureOfOneRankIsUndoneOnAll() {
    assertThatThrownBy(
            () ->
                ThreadMembers.run(
                    WORLD,
                    (rank, rendezvous) ->
                        heaps
                            .get(rank)
                            .allocate(
                                "x",
                                4 * UNIT,
                                rendezvous,
                                _ -> {
                                  if (rank == 1) {
                                    throw new IllegalStateException("cannot be filled");
                                  }
                                })))
        .isInstanceOf(AllocationFailed.class)
        .hasMessage("x: rank 1: cannot be filled");
    assertThat(allocate(4 * UNIT, 0, 1, 2)).isZero();
  }

  @Test
  void releasingTwiceIsAnError() {
    var heap = heaps.getFirst();
    long offset = allocate(1, 0);
    heap.release(offset);
    assertThatThrownBy(() -> heap.release(offset))
        .hasMessageContaining("no allocation at offset 0");
  }

  @Test
  void commonGapsAreThoseOfAllMembers() {
    assertThat(
            HeapAllocator.common(
                List.of(
                    List.of(new Gap(0, 10), new Gap(20, 10), new Gap(40, 5)),
                    List.of(new Gap(5, 20), new Gap(28, 1), new Gap(44, 9)))))
        .containsExactly(new Gap(5, 5), new Gap(20, 5), new Gap(28, 1), new Gap(44, 1));
    assertThat(HeapAllocator.common(List.of(List.of(new Gap(0, 1)), List.of()))).isEmpty();
  }

  private record Taken(long offset, long bytes, List<Integer> group) {}

  @Test
  void randomGroupsNeverShareMemory() {
    var random = new SplittableRandom(42);
    var many = IntStream.range(0, 4).mapToObj(_ -> new HeapAllocator(16 * UNIT)).toList();
    var taken = new ArrayList<Taken>();
    for (int i = 0; i < 300; i++) {
      if (random.nextInt(5) < 3) {
        int members = random.nextInt(1, 1 << many.size());
        var group =
            IntStream.range(0, many.size())
                .filter(rank -> (members & 1 << rank) != 0)
                .boxed()
                .toList();
        long bytes = random.nextLong(1, 4 * UNIT);
        try {
          taken.add(new Taken(allocate(many, bytes, group), bytes, group));
        } catch (AllocationFailed _) {
          // The heap is full for this group.
        }
        disjoint(taken);
      } else if (!taken.isEmpty()) {
        var one = taken.remove(random.nextInt(taken.size()));
        one.group().forEach(rank -> many.get(rank).release(one.offset()));
      }
    }
    assertThat(taken).isNotEmpty();
  }

  private static void disjoint(List<Taken> taken) {
    for (int rank = 0; rank < 4; rank++) {
      var byOffset = new TreeMap<Long, Taken>();
      for (var each : taken) {
        if (each.group().contains(rank)) {
          assertThat(byOffset.put(each.offset(), each)).as("two at one offset").isNull();
        }
      }
      long end = 0;
      for (var each : byOffset.values()) {
        assertThat(each.offset()).as("%s on rank %d", each, rank).isGreaterThanOrEqualTo(end);
        end = each.offset() + each.bytes();
      }
    }
  }
}
