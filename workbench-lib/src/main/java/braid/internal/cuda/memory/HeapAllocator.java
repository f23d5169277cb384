package braid.internal.cuda.memory;

import braid.internal.resource.AllocationFailed;
import braid.internal.resource.Rendezvous;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongConsumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Allocates from this rank's part of a symmetric heap, in which the members of a group need the
/// same offset. Ranks belong to several groups, so their heaps differ: the members exchange their
/// gaps and take the lowest offset that is free on all of them.
///
/// Ranks release memory without waiting, and a member that has not released it may still write to
/// this rank's part. So released memory is a gap only for groups with all ranks of the group that
/// released it. Those take it only if each of them has released it:
///
/// ```
/// rank 0   ranks 0, 1 take offset 0   release   ranks 0, 2 take offset 4096   ranks 0, 1, 2 take 0
/// rank 1   ranks 0, 1 take offset 0   ......still writes to rank 0...... release   as rank 0
/// ```
final class HeapAllocator {
  /// Alignment of NCCL's windows, the strictest user.
  static final long ALIGNMENT_BYTES = 4096;

  private final long bytes;

  /// Allocations by offset.
  private final TreeMap<Long, Allocation> allocations = new TreeMap<>();

  /// @param ranks members of the group, in the world
  private record Allocation(long bytes, Set<Integer> ranks, boolean released) {}

  /// Free bytes between allocations.
  record Gap(long offset, long bytes) {
    private static Gap parse(String text) {
      int colon = text.indexOf(':');
      return new Gap(
          Long.parseLong(text.substring(0, colon)), Long.parseLong(text.substring(colon + 1)));
    }

    private long end() {
      return offset + bytes;
    }

    @Override
    public String toString() {
      return offset + ":" + bytes;
    }
  }

  HeapAllocator(long bytes) {
    this.bytes = bytes;
  }

  /// Allocates at the same offset on all members, which call it together, and returns it after all
  /// members have prepared their part. A failure on one of them is undone and thrown on all.
  ///
  /// @param prepare receives the offset
  long allocate(String label, long requested, Rendezvous rendezvous, LongConsumer prepare) {
    var ranks = rendezvous.ranks();
    var offered =
        Agreement.on(
                rendezvous,
                label,
                () -> gaps(ranks).stream().map(Gap::toString).collect(Collectors.joining(",")))
            .stream()
            .map(HeapAllocator::parse)
            .toList();
    var common = common(offered);
    long size = aligned(requested);
    long offset =
        common.stream()
            .filter(gap -> gap.bytes() >= size)
            .findFirst()
            .orElseThrow(() -> full(label, requested, common))
            .offset();
    var reserved = new AtomicBoolean();
    try {
      Agreement.on(
          rendezvous,
          label,
          () -> {
            reserve(offset, size, ranks);
            reserved.set(true);
            prepare.accept(offset);
            return "";
          });
    } catch (RuntimeException | Error e) {
      if (reserved.get()) {
        release(offset);
      }
      throw e;
    }
    return offset;
  }

  private static List<Gap> parse(String gaps) {
    return Stream.of(gaps.split(",")).filter(gap -> !gap.isEmpty()).map(Gap::parse).toList();
  }

  private static AllocationFailed full(String label, long requested, List<Gap> common) {
    return new AllocationFailed(
        "%s needs %d bytes of NVSHMEM's heap where %d are free in one piece on all ranks; close what is not needed, or set BRAID_NVSHMEM_HEAP_MIB higher"
            .formatted(label, requested, common.stream().mapToLong(Gap::bytes).max().orElse(0)));
  }

  /// Returns the bytes in this rank's gaps for a group.
  long free(Collection<Integer> ranks) {
    return gaps(ranks).stream().mapToLong(Gap::bytes).sum();
  }

  /// Gaps for a group, in ascending order.
  synchronized List<Gap> gaps(Collection<Integer> ranks) {
    var gaps = new ArrayList<Gap>();
    long end = 0;
    for (Map.Entry<Long, Allocation> each : allocations.entrySet()) {
      if (!isFree(each.getValue(), ranks)) {
        if (each.getKey() > end) {
          gaps.add(new Gap(end, each.getKey() - end));
        }
        end = each.getKey() + each.getValue().bytes();
      }
    }
    if (bytes > end) {
      gaps.add(new Gap(end, bytes - end));
    }
    return gaps;
  }

  private static boolean isFree(Allocation allocation, Collection<Integer> ranks) {
    return allocation.released() && ranks.containsAll(allocation.ranks());
  }

  /// Bytes that are in a gap of every member.
  static List<Gap> common(List<List<Gap>> members) {
    return members.stream().reduce(HeapAllocator::common).orElse(List.of());
  }

  private static List<Gap> common(List<Gap> some, List<Gap> others) {
    var common = new ArrayList<Gap>();
    for (int i = 0, j = 0; i < some.size() && j < others.size(); ) {
      var one = some.get(i);
      var other = others.get(j);
      long start = Math.max(one.offset(), other.offset());
      long end = Math.min(one.end(), other.end());
      if (end > start) {
        common.add(new Gap(start, end - start));
      }
      if (one.end() < other.end()) {
        i++;
      } else {
        j++;
      }
    }
    return common;
  }

  private synchronized void reserve(long offset, long size, Collection<Integer> ranks) {
    if (gaps(ranks).stream()
        .noneMatch(gap -> gap.offset() <= offset && gap.end() >= offset + size)) {
      throw new AllocationFailed("another thread of this rank took the memory; try again");
    }
    // All members of the groups that released what is here take part, and have released it.
    allocations
        .headMap(offset + size)
        .entrySet()
        .removeIf(each -> each.getKey() + each.getValue().bytes() > offset);
    allocations.put(offset, new Allocation(size, Set.copyOf(ranks), false));
  }

  /// Releases an allocation on this rank.
  synchronized void release(long offset) {
    var allocation = allocations.get(offset);
    if (allocation == null || allocation.released()) {
      throw new IllegalStateException("no allocation at offset " + offset);
    }
    allocations.put(offset, new Allocation(allocation.bytes(), allocation.ranks(), true));
  }

  private static long aligned(long size) {
    return (Math.max(size, 1) + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
  }
}
