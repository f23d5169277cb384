package braid.schedule.plan;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;

/// The least orders from which all others follow, together with those of lanes.
final class Reduction {
  private static final int[] NOTHING = {};

  private final Events events;
  private final Conflicts conflicts;
  private final int[][] before;
  private final int[][] stated;
  private final int[][] kept;

  /// By event, the last place on each lane that comes before it; the place on its own lane may be
  /// missing. Events share clocks; one that no later event needs is dropped.
  private final int[][] clocks;

  private final int[] uses;

  /// True for events that come after steps of other ranks.
  private final boolean[] aware;

  /// By event, the ends of other ranks that come after it.
  private final Map<Integer, List<Integer>> ends = new HashMap<>();

  /// By end, then by rank, the steps of other ranks that it waits for, of those that were looked
  /// at.
  private final Map<Integer, Map<Integer, List<Integer>>> lastUses = new HashMap<>();

  Reduction(Events events) {
    this.events = events;
    this.conflicts = new Conflicts(events);
    this.before = conflicts.before();
    this.stated = conflicts.stated();
    this.kept = new int[events.size()][];
    this.clocks = new int[events.size()][];
    this.uses = new int[events.size()];
    this.aware = new boolean[events.size()];
    var sorted = sorted();
    if (sorted.length < events.size()) {
      // Ranks wait for each other, which the check explains.
      System.arraycopy(before, 0, kept, 0, before.length);
      return;
    }
    var position = new int[events.size()];
    for (int i = 0; i < sorted.length; i++) {
      position[sorted[i]] = i;
    }
    for (int event : sorted) {
      for (int earlier : before[event]) {
        if (events.isEnd(event)) {
          ends.computeIfAbsent(earlier, _ -> new ArrayList<>()).add(event);
        } else {
          uses[earlier]++;
        }
      }
      for (int earlier : certain(event)) {
        uses[earlier]++;
      }
    }
    for (int event : sorted) {
      keep(event, position);
    }
  }

  /// Returns the events that each event waits for, besides those before it on its lane.
  int[][] kept() {
    return kept;
  }

  Conflicts conflicts() {
    return conflicts;
  }

  /// Returns the events before an event that need no wait of ours: the one before it on its lane,
  /// or the last of each lane before the end of a rank, and those that its program states.
  private int[] certain(int event) {
    int previous = events.previous(event);
    var lanes =
        events.isEnd(event)
            ? lasts(events.rank(event))
            : previous == Events.NONE ? NOTHING : new int[] {previous};
    if (stated[event].length == 0) {
      return lanes;
    }
    return IntStream.concat(Arrays.stream(lanes), Arrays.stream(stated[event])).toArray();
  }

  private int[] lasts(int rank) {
    var last = new TreeMap<Integer, Integer>();
    for (int event = events.begin(rank) + 1; event < events.end(rank); event++) {
      last.put(events.lane(event), event);
    }
    return last.values().stream().mapToInt(Integer::intValue).toArray();
  }

  private void keep(int event, int[] position) {
    var certain = certain(event);
    var clock = NOTHING;
    boolean owned = false;
    if (certain.length == 1 && events.lane(certain[0]) == events.lane(event)) {
      clock = clocks[certain[0]];
    } else {
      for (int earlier : certain) {
        clock = with(clock, owned, earlier);
        owned = true;
      }
    }
    if (events.isEnd(event)) {
      var known = clock;
      kept[event] =
          lastUses.getOrDefault(event, Map.of()).values().stream()
              .flatMap(List::stream)
              .filter(last -> !isBefore(last, event, known))
              .mapToInt(Integer::intValue)
              .sorted()
              .toArray();
      return;
    }
    // The latest first: what it implies is not kept.
    var all = new ArrayList<Integer>();
    for (int earlier : latestFirst(before[event], position)) {
      if (!isBefore(earlier, event, clock)) {
        all.add(earlier);
        clock = with(clock, owned, earlier);
        owned = true;
      }
    }
    kept[event] =
        all.isEmpty() ? NOTHING : all.stream().mapToInt(Integer::intValue).sorted().toArray();
    clocks[event] = clock;
    aware[event] = isAware(certain, event) || isAware(kept[event], event);
    var latest = clock;
    for (int end : ends.getOrDefault(event, List.of())) {
      var lasts = lastUses.computeIfAbsent(end, _ -> new HashMap<>());
      var own = lasts.computeIfAbsent(events.rank(event), _ -> new ArrayList<>());
      // A step that comes after none of another rank implies no use by another rank.
      (aware[event] ? lasts.values() : List.of(own))
          .forEach(some -> some.removeIf(last -> isBefore(last, event, latest)));
      own.add(event);
    }
    for (int earlier : before[event]) {
      release(earlier);
    }
    for (int earlier : certain) {
      release(earlier);
    }
  }

  private boolean isAware(int[] before, int event) {
    for (int earlier : before) {
      if (aware[earlier]
          || (events.rank(earlier) != events.rank(event) && !events.isBegin(earlier))) {
        return true;
      }
    }
    return false;
  }

  private static int[] latestFirst(int[] some, int[] position) {
    if (some.length < 2) {
      return some;
    }
    var keys = new long[some.length];
    for (int i = 0; i < some.length; i++) {
      keys[i] = ((long) -position[some[i]] << 32) + some[i];
    }
    Arrays.sort(keys);
    return Arrays.stream(keys).mapToInt(key -> (int) key).toArray();
  }

  private void release(int event) {
    if (--uses[event] == 0) {
      clocks[event] = NOTHING;
    }
  }

  /// @param clock clock of the later event
  private boolean isBefore(int earlier, int event, int[] clock) {
    int lane = events.lane(earlier);
    if (lane == events.lane(event)) {
      return events.place(earlier) < events.place(event);
    }
    return lane < clock.length && clock[lane] >= events.place(earlier);
  }

  /// Returns a clock that is after an event too.
  ///
  /// @param owned true if the clock is not shared, so that it may change
  private int[] with(int[] clock, boolean owned, int event) {
    var all = owned ? clock : Arrays.copyOf(clock, events.lanes());
    var earlier = clocks[event];
    for (int lane = 0; lane < earlier.length; lane++) {
      all[lane] = Math.max(all[lane], earlier[lane]);
    }
    int lane = events.lane(event);
    all[lane] = Math.max(all[lane], events.place(event));
    // Every event comes after the begin of its rank.
    int begin = events.lane(events.begin(events.rank(event)));
    all[begin] = Math.max(all[begin], 1);
    return all;
  }

  /// Returns the events, each after those before it; fewer if events wait for each other.
  private int[] sorted() {
    var state = new byte[events.size()];
    var next = new int[events.size()];
    var stack = new int[events.size()];
    var sorted = new int[events.size()];
    int count = 0;
    for (int root = 0; root < events.size(); root++) {
      int depth = 0;
      if (state[root] == 0) {
        stack[depth++] = root;
        state[root] = 1;
      }
      while (depth > 0) {
        int event = stack[depth - 1];
        int earlier = before(event, next[event]++);
        if (earlier == Events.NONE) {
          state[event] = 2;
          sorted[count++] = event;
          depth--;
        } else if (state[earlier] == 0) {
          state[earlier] = 1;
          stack[depth++] = earlier;
        } else if (state[earlier] == 1) {
          return Arrays.copyOf(sorted, count);
        }
      }
    }
    return sorted;
  }

  private int before(int event, int index) {
    int direct = before[event].length;
    if (index < direct) {
      return before[event][index];
    }
    if (index < direct + stated[event].length) {
      return stated[event][index - direct];
    }
    int rest = index - direct - stated[event].length;
    if (events.isEnd(event)) {
      // All steps of the rank: the last of each lane is among them.
      int step = event - 1 - rest;
      return step > events.begin(events.rank(event)) ? step : Events.NONE;
    }
    return rest == 0 ? events.previous(event) : Events.NONE;
  }
}
