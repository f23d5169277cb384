package braid.schedule.plan;

import java.util.Arrays;
import java.util.BitSet;
import java.util.stream.IntStream;

/// The least orders from which all others follow, together with those of chains: an event waits for
/// an earlier one only if nothing else that it comes after does.
///
/// The clock of an event has for each chain the place of its last event that comes before. Events
/// of a chain share a clock until one of them waits; a clock that no later event needs is dropped.
/// If ranks are symmetric, an event's clock is the clock of its representative, rotated.
final class Reduction {
  private static final int[] NOTHING = {};

  private final Events events;
  private final int[][] required;
  private final int[][] stated;

  /// By event, the representatives of those before it, until it has been visited.
  private final int[][] before;

  private final int[][] kept;
  private final int[][] clocks;

  /// By event, the number of later events that need its clock.
  private final int[] uses;

  /// By event, its number in the order of visits.
  private final int[] position;

  Reduction(Events events, Conflicts conflicts) {
    this.events = events;
    this.required = conflicts.required().links(events);
    this.stated = conflicts.stated().links(events);
    int size = events.size();
    this.before = new int[size][];
    this.kept = new int[size][];
    this.clocks = new int[size][];
    this.uses = new int[size];
    this.position = new int[size];
    Arrays.fill(kept, NOTHING);
    Arrays.fill(clocks, NOTHING);
    for (int event = 0; event < size; event++) {
      if (events.representative(event) == event) {
        before[event] = before(event);
        for (int earlier : before[event]) {
          uses[earlier]++;
        }
      }
    }
    if (!keepInOrder()) {
      // Ranks wait for each other, which the check explains.
      System.arraycopy(required, 0, kept, 0, kept.length);
    }
  }

  /// Returns the links of each representative event to those that it waits for, besides those
  /// before it on its chain.
  int[][] kept() {
    return kept;
  }

  /// Returns the events before an event that need no wait of ours: the one before it on its lane,
  /// or the last of each lane before the end of a rank, and those that its program states.
  private int[] certain(int event) {
    if (events.isBegin(event)) {
      return NOTHING;
    }
    var own =
        events.isEnd(event) ? events.lasts(events.rank(event)) : new int[] {events.previous(event)};
    return stated[event].length == 0
        ? own
        : IntStream.concat(
                Arrays.stream(own), Arrays.stream(stated[event]).map(EventPairs::earlier))
            .toArray();
  }

  private int[] before(int event) {
    return IntStream.concat(
            Arrays.stream(required[event]).map(EventPairs::earlier), Arrays.stream(certain(event)))
        .map(events::representative)
        .toArray();
  }

  /// Visits each event after those before it; returns false if events wait for each other.
  private boolean keepInOrder() {
    int size = events.size();
    var begun = new BitSet(size);
    var next = new int[size];
    var stack = new int[size];
    int visited = 0;
    for (int root = 0; root < size; root++) {
      int depth = 0;
      if (position[root] == 0 && events.representative(root) == root) {
        stack[depth++] = root;
      }
      while (depth > 0) {
        int event = stack[depth - 1];
        begun.set(event);
        if (next[event] < before[event].length) {
          int earlier = before[event][next[event]++];
          if (position[earlier] == 0) {
            if (begun.get(earlier)) {
              return false;
            }
            stack[depth++] = earlier;
          }
        } else {
          keep(event);
          for (int earlier : before[event]) {
            if (--uses[earlier] == 0) {
              clocks[earlier] = NOTHING;
            }
          }
          before[event] = NOTHING;
          position[event] = ++visited;
          depth--;
        }
      }
    }
    return true;
  }

  private void keep(int event) {
    var certain = certain(event);
    int chains = events.ranks() * events.width();
    boolean shared = certain.length == 1 && events.rank(certain[0]) == events.rank(event);
    var clock = shared ? clocks[certain[0]] : new int[chains];
    if (!shared) {
      for (int earlier : certain) {
        include(earlier, clock);
      }
    }
    // The latest first: what comes before it needs no wait.
    var links = latestFirst(required[event]);
    int count = 0;
    for (int link : links) {
      int earlier = EventPairs.earlier(link);
      int chain = chain(earlier);
      if (chain >= clock.length || clock[chain] < events.place(earlier)) {
        if (shared) {
          clock = Arrays.copyOf(clock, chains);
          shared = false;
        }
        include(earlier, clock);
        links[count++] = link;
      }
    }
    kept[event] = Arrays.copyOf(links, count);
    clocks[event] = clock;
  }

  private int[] latestFirst(int[] links) {
    var keys = new long[links.length];
    for (int i = 0; i < links.length; i++) {
      int earlier = events.representative(EventPairs.earlier(links[i]));
      keys[i] = ((long) -position[earlier] << 32) | Integer.toUnsignedLong(links[i]);
    }
    Arrays.sort(keys);
    return Arrays.stream(keys).mapToInt(key -> (int) key).toArray();
  }

  private int chain(int event) {
    return events.rank(event) * events.width() + events.chain(event);
  }

  /// Adds an event and its clock to a clock.
  private void include(int event, int[] clock) {
    var earlier = clocks[events.representative(event)];
    int shift = events.distance(event) * events.width();
    int rest = Math.max(0, earlier.length - shift);
    for (int i = 0; i < rest; i++) {
      clock[i + shift] = Math.max(clock[i + shift], earlier[i]);
    }
    for (int i = rest; i < earlier.length; i++) {
      clock[i - rest] = Math.max(clock[i - rest], earlier[i]);
    }
    int chain = chain(event);
    clock[chain] = Math.max(clock[chain], events.place(event));
    // Every step comes after the begin of its rank.
    int begin = chain(events.begin(events.rank(event)));
    clock[begin] = Math.max(clock[begin], 1);
  }
}
