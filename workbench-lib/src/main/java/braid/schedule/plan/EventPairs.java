package braid.schedule.plan;

import java.util.Arrays;

/// Pairs of an earlier and a later event, and whether the later one reads what the earlier one
/// writes: sorted numbers, since a large schedule has millions.
final class EventPairs {
  private static final int[] NONE = {};

  private long[] pairs = new long[64];
  private int count;

  /// True if the pairs are sorted, without duplicates.
  private boolean sorted;

  void add(int earlier, int later, boolean data) {
    if (count == pairs.length) {
      pairs = Arrays.copyOf(pairs, 2 * count);
    }
    pairs[count++] = pair(earlier, later, data);
    sorted = false;
  }

  private static long pair(int earlier, int later, boolean data) {
    return ((long) later << 32) + 2L * earlier + (data ? 1 : 0);
  }

  private static int later(long pair) {
    return (int) (pair >> 32);
  }

  private static int link(long pair) {
    return (int) pair;
  }

  /// Returns the earlier event of a link.
  static int earlier(int link) {
    return link >>> 1;
  }

  /// Returns whether the later event of a link reads what the earlier one writes.
  static boolean hasData(int link) {
    return (link & 1) != 0;
  }

  /// Returns whether the pairs of each rank's events are those of rank 0, shifted. The steps of all
  /// ranks must be alike.
  boolean areSymmetric(Events events) {
    sort();
    var base =
        Arrays.stream(pairs, 0, count).filter(pair -> events.rank(later(pair)) == 0).toArray();
    return (long) base.length * events.ranks() == count
        && Arrays.stream(pairs, 0, count)
            .allMatch(
                pair -> {
                  int distance = -events.rank(later(pair));
                  var shifted =
                      pair(
                          events.shifted(earlier(link(pair)), distance),
                          events.shifted(later(pair), distance),
                          hasData(link(pair)));
                  return Arrays.binarySearch(base, shifted) >= 0;
                });
  }

  /// Returns the links to the earlier events of each event that represents others.
  int[][] links(Events events) {
    sort();
    var links = new int[events.size()][];
    Arrays.fill(links, NONE);
    for (int first = 0, next; first < count; first = next) {
      int later = later(pairs[first]);
      int distinct = 0;
      for (next = first; next < count && later(pairs[next]) == later; next++) {
        boolean repeated =
            next > first && earlier(link(pairs[next])) == earlier(link(pairs[next - 1]));
        // Data comes last.
        pairs[first + (repeated ? distinct - 1 : distinct++)] = pairs[next];
      }
      if (later < links.length) {
        links[later] =
            Arrays.stream(pairs, first, first + distinct).mapToInt(EventPairs::link).toArray();
      }
    }
    return links;
  }

  /// Sorts the pairs, without duplicates.
  private void sort() {
    if (sorted) {
      return;
    }
    Arrays.sort(pairs, 0, count);
    int distinct = 0;
    for (int i = 0; i < count; i++) {
      if (i == 0 || pairs[i] != pairs[i - 1]) {
        pairs[distinct++] = pairs[i];
      }
    }
    count = distinct;
    sorted = true;
  }
}
