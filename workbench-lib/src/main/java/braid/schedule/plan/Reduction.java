package braid.schedule.plan;

import java.util.Arrays;
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
  private final int[][] kept;
  private final int[][] clocks;

  /// By event, the number of later events that need its clock.
  private final int[] uses;

  Reduction(Events events, Conflicts conflicts) {
    this.events = events;
    this.required = conflicts.required().links(events);
    this.stated = conflicts.stated().links(events);
    this.kept = new int[events.size()][];
    this.clocks = new int[events.size()][];
    this.uses = new int[events.size()];
    Arrays.fill(kept, NOTHING);
    Arrays.fill(clocks, NOTHING);
    for (int event = 0; event < events.size(); event++) {
      if (events.representative(event) == event) {
        for (int earlier : earlier(event)) {
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
        events.isEnd(event)
            ? events.lasts(events.rank(event))
            : new int[] {events.previous(event)};
    return stated[event].length == 0
        ? own
        : IntStream.concat(
                Arrays.stream(own), Arrays.stream(stated[event]).map(EventPairs::earlier))
            .toArray();
  }

  /// Returns the representatives of the events before an event.
  private int[] earlier(int event) {
    return IntStream.concat(
            Arrays.stream(required[event]).map(EventPairs::earlier), Arrays.stream(certain(event)))
        .map(events::representative)
        .toArray();
  }

  /// Visits each event after those before it; returns false if events wait for each other.
  private boolean keepInOrder() {
    var state = new byte[events.size()];
    var next = new int[events.size()];
    var before = new int[events.size()][];
    var stack = new int[events.size()];
    for (int root = 0; root < events.size(); root++) {
      int depth = 0;
      if (state[root] == 0 && events.representative(root) == root) {
        stack[depth++] = root;
      }
      while (depth > 0) {
        int event = stack[depth - 1];
        if (state[event] == 0) {
          state[event] = 1;
          before[event] = earlier(event);
        }
        if (next[event] < before[event].length) {
          int earlier = before[event][next[event]++];
          if (state[earlier] == 1) {
            return false;
          }
          if (state[earlier] == 0) {
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
          state[event] = 2;
          depth--;
        }
      }
    }
    return true;
  }

  private void keep(int event) {
    var certain = certain(event);
    var known = NOTHING;
    if (certain.length == 1 && events.rank(certain[0]) == events.rank(event)) {
      known = clocks[certain[0]];
    } else if (certain.length > 0) {
      known = new int[events.ranks() * events.width()];
      for (int earlier : certain) {
        include(earlier, events.place(earlier), known);
      }
    }
    var links = unknown(required[event], known);
    if (links.length > 0) {
      // What one of them comes after is known from it.
      known = Arrays.copyOf(known, events.ranks() * events.width());
      for (int link : links) {
        int earlier = EventPairs.earlier(link);
        include(earlier, events.place(earlier) - 1, known);
      }
      links = unknown(links, known);
      for (int link : links) {
        int earlier = EventPairs.earlier(link);
        known[chain(earlier)] = events.place(earlier);
      }
    }
    kept[event] = links;
    clocks[event] = known;
  }

  private int[] unknown(int[] links, int[] clock) {
    return clock.length == 0
        ? links
        : Arrays.stream(links)
            .filter(
                link -> {
                  int earlier = EventPairs.earlier(link);
                  return clock[chain(earlier)] < events.place(earlier);
                })
            .toArray();
  }

  private int chain(int event) {
    return events.rank(event) * events.width() + events.chain(event);
  }

  /// Adds the clock of an event to another one, and its chain up to a place.
  private void include(int event, int place, int[] clock) {
    var earlier = clocks[events.representative(event)];
    int to = events.distance(event) * events.width();
    for (int from = 0; from < earlier.length; from++) {
      clock[to] = Math.max(clock[to], earlier[from]);
      to = to + 1 == clock.length ? 0 : to + 1;
    }
    int chain = chain(event);
    clock[chain] = Math.max(clock[chain], place);
    if (!events.isBegin(event)) {
      // Every step comes after the begin of its rank.
      clock[events.begin(events.rank(event)) * events.width() + events.width() - 1] = 1;
    }
  }
}
