package braid.schedule.plan;

import braid.schedule.Slice;
import braid.schedule.Step;
import braid.schedule.Step.Access.Use;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// Pairs of events that use the same rows, at least one of them writing, in the order in which they
/// must happen:
///
/// - steps of one rank in the order of its program;
/// - steps of two ranks by their rounds; in one round a write before a read;
/// - a step on another rank's memory after that rank's begin, and before its end.
///
/// Two writes by different ranks in one round have no order, which the check reports.
final class Conflicts {
  private static final int[] NONE = {};

  private final Events events;
  private final Pairs pairs = new Pairs();
  private final Pairs stated = new Pairs();

  /// One rank's array.
  private record Memory(String name, int rank) {}

  /// An event's use of rows.
  private record Touch(int event, Use use, long start, long end, Slice columns) {}

  /// A word of a rank.
  private record Word(int rank, String flag, int index) {}

  Conflicts(Events events) {
    this.events = events;
    var touches = new LinkedHashMap<Memory, List<Touch>>();
    for (int rank = 0; rank < events.ranks(); rank++) {
      touch(rank, touches);
    }
    touches.values().forEach(this::sweep);
    addStated();
  }

  private void touch(int rank, Map<Memory, List<Touch>> touches) {
    // The first and the last of a lane's steps on a rank's memory order all others.
    var firsts = new int[events.lanesOfRank() * events.ranks()];
    var lasts = new int[firsts.length];
    var writes = new BitSet();
    for (int event = events.begin(rank) + 1; event < events.end(rank); event++) {
      for (var access : events.accesses(event)) {
        var region = access.region();
        if (region.isEmpty()) {
          continue;
        }
        touches
            .computeIfAbsent(
                new Memory(region.buffer().name(), region.rank()), _ -> new ArrayList<>())
            .add(
                new Touch(
                    event, access.use(), region.row(), region.slice().end(), region.columnSlice()));
        if (region.rank() != rank) {
          int use = events.laneOfRank(event) * events.ranks() + region.rank();
          if (firsts[use] == 0) {
            firsts[use] = event;
            pairs.add(events.begin(region.rank()), event, false);
          }
          lasts[use] = event;
          writes.set(use, access.use() != Use.READ);
        }
      }
    }
    for (int use = 0; use < lasts.length; use++) {
      if (lasts[use] > 0) {
        pairs.add(lasts[use], events.end(use % events.ranks()), writes.get(use));
      }
    }
  }

  /// Compares overlapping touches, in the order of their first rows.
  private void sweep(List<Touch> all) {
    all.sort(Comparator.comparingLong(Touch::start));
    var active = new EnumMap<Use, List<Touch>>(Use.class);
    for (var touch : all) {
      active.forEach(
          (use, open) -> {
            if (use.conflicts(touch.use())) {
              open.removeIf(closed -> closed.end() <= touch.start());
              for (var overlapping : open) {
                if (events.lane(overlapping.event()) != events.lane(touch.event())
                    && overlapping.columns().overlaps(touch.columns())) {
                  compare(overlapping, touch);
                }
              }
            }
          });
      active.computeIfAbsent(touch.use(), _ -> new ArrayList<>()).add(touch);
    }
  }

  private void compare(Touch one, Touch two) {
    int a = one.event();
    int b = two.event();
    int order =
        events.rank(a) == events.rank(b)
            ? Integer.compare(a, b)
            : events.round(a) != events.round(b)
                ? Integer.compare(events.round(a), events.round(b))
                : Boolean.compare(one.use() == Use.READ, two.use() == Use.READ);
    if (order < 0) {
      pairs.add(a, b, one.use() != Use.READ && two.use() != Use.WRITE);
    } else if (order > 0) {
      pairs.add(b, a, two.use() != Use.READ && one.use() != Use.WRITE);
    }
  }

  /// Adds the order that the programs state themselves, by marks, signals and library calls.
  private void addStated() {
    var signals = new HashMap<Word, Integer>();
    var marks = new HashMap<Long, Integer>();
    var calls = new ArrayList<List<Integer>>();
    for (int event = 0; event < events.size(); event++) {
      int rank = events.rank(event);
      if (events.isBegin(event)) {
        calls.add(new ArrayList<>());
      }
      if (events.isBegin(event) || events.isEnd(event)) {
        continue;
      }
      switch (events.step(event)) {
        case Step.Signal signal ->
            signals.put(new Word(signal.to(), signal.flag().name(), signal.index()), event);
        case Step.Mark mark -> marks.put(((long) rank << 32) + mark.number(), event);
        case Step.LibraryCall _ -> calls.getLast().add(event);
        default -> {}
      }
    }
    for (int event = 0; event < events.size(); event++) {
      int rank = events.rank(event);
      switch (events.step(event)) {
        case Step.Wait wait ->
            state(signals, new Word(rank, wait.flag().name(), wait.index()), event);
        case Step.After after -> state(marks, ((long) rank << 32) + after.mark(), event);
        default -> {}
      }
    }
    // All ranks enter a library call before any of them leaves it.
    int most = calls.stream().mapToInt(List::size).max().orElse(0);
    for (int call = 0; call < most; call++) {
      int place = call;
      var meeting = calls.stream().filter(own -> own.size() > place).map(own -> own.get(place));
      var all = meeting.toList();
      all.forEach(
          left -> all.forEach(entered -> stated.add(events.previous(entered), left, false)));
    }
  }

  private <K> void state(Map<K, Integer> earlier, K name, int event) {
    var found = earlier.get(name);
    if (found != null) {
      stated.add(found, event, false);
    }
  }

  /// Returns the events that must happen before each event.
  int[][] before() {
    return pairs.before(events.size());
  }

  /// Returns the events that happen before each event because the programs state it.
  int[][] stated() {
    return stated.before(events.size());
  }

  /// Returns whether the later event reads what the earlier one writes, or is the end of the rank
  /// whose memory it writes.
  boolean hasData(int earlier, int later) {
    return pairs.hasData(earlier, later);
  }

  /// Pairs of an earlier and a later event, and whether the later one reads what the earlier one
  /// writes: sorted numbers, since a large schedule has millions.
  private static final class Pairs {
    private long[] pairs = new long[64];
    private int count;
    private boolean sorted;

    void add(int earlier, int later, boolean data) {
      if (count == pairs.length) {
        pairs = Arrays.copyOf(pairs, 2 * count);
      }
      pairs[count++] = number(earlier, later, data);
      sorted = false;
    }

    private static long number(int earlier, int later, boolean data) {
      return ((long) later << 32) + 2L * earlier + (data ? 1 : 0);
    }

    private void sort() {
      if (!sorted) {
        Arrays.sort(pairs, 0, count);
        sorted = true;
      }
    }

    /// Returns the earlier events of each event, without duplicates.
    int[][] before(int size) {
      sort();
      var before = new int[size][];
      int next = 0;
      for (int event = 0; event < size; event++) {
        int first = next;
        while (next < count && pairs[next] >> 32 == event) {
          next++;
        }
        before[event] =
            first == next
                ? NONE
                : Arrays.stream(pairs, first, next)
                    .mapToInt(pair -> (int) (pair & 0xffffffffL) >>> 1)
                    .distinct()
                    .toArray();
      }
      return before;
    }

    boolean hasData(int earlier, int later) {
      sort();
      return Arrays.binarySearch(pairs, 0, count, number(earlier, later, true)) >= 0;
    }
  }
}
