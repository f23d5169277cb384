package braid.schedule.check;

import braid.schedule.Step;
import braid.schedule.Step.After;
import braid.schedule.Step.LibraryCall;
import braid.schedule.Step.Wait;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// The order of two consecutive iterations in flight. Events are the steps of both, the caller's
/// accesses on each rank before, between and after them, and the points at which library calls
/// meet:
///
/// ```
/// rank 0   caller ─┬─ lane ── lane ─┬─ caller ─┬─ lane ── lane ─┬─ caller
///                  └─ lane ──┬──────┘          └─ lane ──┬──────┘
///                          signal                      signal
/// rank 1   caller ─┬─ lane ──┴──────┬─ caller ─── ...
/// ```
///
/// Only signals and library calls synchronize ranks.
final class Order {
  static final int ITERATIONS = 2;

  static final int NONE = -1;
  private static final int[] NO_CLOCK = {};

  private final Wiring wiring;
  private final int size;
  private final int ranks;
  private final int lanes;
  private final int[][] before;

  /// By event, the events that the host waits for before it enqueues the event.
  private final int[] @Nullable [] hostWaits;

  private final int[] laneOf;
  private final int[] place;
  private final int[][] clocks;
  private final List<Finding> deadlocks = new ArrayList<>();

  /// Events of steps that wait for each other.
  private final BitSet cyclic = new BitSet();

  private final int[] sorted;

  Order(Wiring wiring) {
    this.wiring = wiring;
    this.size = wiring.size();
    this.ranks = wiring.schedule().ranks();
    this.lanes = wiring.laneCount();
    int events =
        ITERATIONS * size + (ITERATIONS + 1) * ranks + ITERATIONS * wiring.meetings().size();
    this.before = new int[events][];
    this.hostWaits = new int[events][];
    this.laneOf = new int[events];
    this.place = new int[events];
    this.clocks = new int[events][];
    this.sorted = new int[events];
    Arrays.fill(laneOf, NONE);
    for (int rank = 0; rank < ranks; rank++) {
      link(rank);
    }
    for (int iteration = 0; iteration < ITERATIONS; iteration++) {
      for (int meeting = 0; meeting < wiring.meetings().size(); meeting++) {
        int behind = iteration;
        before[meeting(iteration, meeting)] =
            Arrays.stream(wiring.meetings().get(meeting))
                .map(call -> before[step(behind, call)][0])
                .toArray();
      }
    }
    sort();
  }

  /// Returns cycles of ranks that wait for each other, with their steps.
  List<Finding> deadlocks() {
    return deadlocks;
  }

  /// Returns whether a step is in a deadlock.
  boolean isCyclic(int number) {
    return cyclic.get(number);
  }

  int step(int iteration, int number) {
    return iteration * size + number;
  }

  /// Returns the event of a rank's caller before an iteration.
  int caller(int iteration, int rank) {
    return ITERATIONS * size + iteration * ranks + rank;
  }

  private int meeting(int iteration, int meeting) {
    return caller(ITERATIONS + 1, 0) + iteration * wiring.meetings().size() + meeting;
  }

  boolean isStep(int event) {
    return event < ITERATIONS * size;
  }

  boolean isCaller(int event) {
    return !isStep(event) && event < caller(ITERATIONS + 1, 0);
  }

  int iteration(int event) {
    return isStep(event) ? event / size : (event - ITERATIONS * size) / ranks;
  }

  int number(int event) {
    return event % size;
  }

  int rank(int event) {
    return isStep(event) ? wiring.rank(number(event)) : (event - ITERATIONS * size) % ranks;
  }

  /// Returns the events, each after all that are ordered before it.
  int[] sorted() {
    return sorted;
  }

  /// Returns the same event an iteration later; [#NONE] for one of the last.
  int next(int event) {
    if (isStep(event)) {
      return event < (ITERATIONS - 1) * size ? event + size : NONE;
    }
    return isCaller(event) && iteration(event) < ITERATIONS ? event + ranks : NONE;
  }

  /// Returns the index of a meeting of the first iteration; negative for other events.
  int meetingAt(int event) {
    int meeting = event - meeting(0, 0);
    return meeting < wiring.meetings().size() ? meeting : NONE;
  }

  /// Returns whether one event ends before the other begins, whatever the ranks' speed.
  boolean isBefore(int one, int other) {
    int lane = laneOf[one];
    return lane == laneOf[other]
        ? place[one] < place[other]
        : lane < clocks[other].length && clocks[other][lane] >= place[one];
  }

  /// Returns the number of an event's lane among those of all ranks.
  int lane(int event) {
    return laneOf[event];
  }

  /// Returns the place of an event on its lane.
  int place(int event) {
    return place[event];
  }

  /// Returns whether an event is another or before it.
  boolean isUntil(int event, int other) {
    return event == other || isBefore(event, other);
  }

  /// Returns whether two events would be ordered if two others were, in this iteration or a later
  /// one.
  boolean orders(int before, int after, Races.Pair pair) {
    int earlier = before;
    int later = after;
    while (earlier != NONE && later != NONE) {
      if (isUntil(pair.before(), earlier) && isUntil(later, pair.after())) {
        return true;
      }
      earlier = next(earlier);
      later = next(later);
    }
    return false;
  }

  private void link(int rank) {
    var last = new int[lanes];
    var places = new int[lanes];
    for (int iteration = 0; iteration < ITERATIONS; iteration++) {
      int begin = caller(iteration, rank);
      if (iteration == 0) {
        before[begin] = new int[0];
      }
      laneOf[begin] = ranks * lanes + rank;
      place[begin] = iteration + 1;
      Arrays.fill(last, begin);
      var waits = new ArrayList<Integer>();
      for (int number = wiring.first(rank); number < wiring.first(rank + 1); number++) {
        int event = step(iteration, number);
        int lane = wiring.lane(number);
        int released = wiring.releasedBy(number);
        int meeting = wiring.meetingOf(number);
        before[event] =
            released != NONE
                ? new int[] {last[lane], step(iteration, released)}
                : meeting != NONE
                    ? new int[] {last[lane], meeting(iteration, meeting)}
                    : new int[] {last[lane]};
        hostWaits[event] =
            waits.isEmpty() ? null : waits.stream().mapToInt(Integer::intValue).toArray();
        if (wiring.step(number) instanceof LibraryCall call && call.hostWaits()) {
          waits.add(last[lane]);
        }
        laneOf[event] = rank * lanes + lane;
        place[event] = ++places[lane];
        last[lane] = event;
      }
      int end = caller(iteration + 1, rank);
      before[end] = lanes == 0 ? new int[] {begin} : last.clone();
      laneOf[end] = ranks * lanes + rank;
      place[end] = iteration + 2;
    }
  }

  /// Sorts the events by Tarjan's algorithm: events of a cycle, which all wait for each other, are
  /// consecutive.
  private void sort() {
    var index = new int[before.length];
    var low = new int[before.length];
    var done = new boolean[before.length];
    var next = new int[before.length];
    var path = new int[before.length];
    var open = new int[before.length];
    int begun = 0;
    int opened = 0;
    int count = 0;
    for (int root = 0; root < before.length; root++) {
      int depth = 0;
      if (index[root] == 0) {
        path[depth++] = root;
      }
      while (depth > 0) {
        int event = path[depth - 1];
        if (index[event] == 0) {
          index[event] = ++begun;
          low[event] = begun;
          open[opened++] = event;
        }
        int other = before(event, next[event]++);
        if (other != NONE && index[other] == 0) {
          path[depth++] = other;
        } else if (other != NONE && !done[other]) {
          low[event] = Math.min(low[event], index[other]);
        } else if (other == NONE) {
          depth--;
          if (depth > 0) {
            low[path[depth - 1]] = Math.min(low[path[depth - 1]], low[event]);
          }
          if (low[event] == index[event]) {
            int from = count;
            do {
              sorted[count] = open[--opened];
              done[sorted[count]] = true;
            } while (sorted[count++] != event);
            add(from, count);
          }
        }
      }
    }
  }

  /// Adds an event, or those of a cycle, after all that are ordered before it.
  private void add(int from, int end) {
    if (end - from == 1) {
      setClock(sorted[from]);
      return;
    }
    var events = new BitSet();
    for (int i = from; i < end; i++) {
      events.set(sorted[i]);
    }
    // All events of the cycle share one clock, so each counts as before the others. Steps without
    // an order even then are a mistake of their own.
    var clock = new int[ranks * (lanes + 1)];
    for (int event : events.stream().toArray()) {
      for (int other : before[event]) {
        if (!events.get(other)) {
          advance(clock, other);
        }
      }
    }
    for (int event : events.stream().toArray()) {
      clocks[event] = clock;
      advance(clock, event);
    }
    int known = cyclic.cardinality();
    events.stream().filter(this::isStep).forEach(event -> cyclic.set(number(event)));
    if (cyclic.cardinality() > known) {
      describe(events);
    }
  }

  private int before(int event, int index) {
    int direct = before[event].length;
    if (index < direct) {
      return before[event][index];
    }
    var waited = hostWaits[event];
    return waited != null && index - direct < waited.length ? waited[index - direct] : NONE;
  }

  /// Describes a cycle: each event waits for the next, and the last one for the first.
  private void describe(BitSet events) {
    var cycle = new ArrayList<Integer>();
    int event = events.nextSetBit(0);
    while (!cycle.contains(event)) {
      cycle.add(event);
      int index = 0;
      while (!events.get(before(event, index))) {
        index++;
      }
      event = before(event, index);
    }
    cycle.subList(0, cycle.indexOf(event)).clear();
    cycle.add(event);
    var waits =
        IntStream.range(0, cycle.size() - 1)
            .filter(i -> isStep(cycle.get(i)) && before[cycle.get(i)][0] != cycle.get(i + 1))
            .boxed()
            .toList();
    deadlocks.add(
        new Finding(
            rank(cycle.get(waits.getFirst())),
            "deadlock: %s; each waits for the next, and the last for the first"
                .formatted(
                    waits.stream()
                        .map(i -> describe(cycle.get(i), cycle.get(i + 1)))
                        .collect(Collectors.joining("; ")))));
  }

  private String describe(int event, int target) {
    var name = wiring.name(number(event));
    return switch (wiring.step(number(event))) {
      case Wait _ -> name + cause(number(event));
      case After _ -> name;
      case LibraryCall _ when before[event][1] == target -> name + ", which waits for all ranks";
      case Step _ -> name + ", which is enqueued only after a library call that the host waits for";
    };
  }

  /// Returns the step after which a wait's signal is raised, such as `, raised after copy of …`;
  /// empty if none comes before it.
  private String cause(int wait) {
    int event = wiring.releasedBy(wait);
    while (event != NONE && isStep(event)) {
      var step = wiring.step(event);
      if (step instanceof After && wiring.releasedBy(event) != NONE) {
        event = wiring.releasedBy(event);
      } else if (step.accesses(rank(event)).isEmpty()) {
        event = before[event][0];
      } else {
        return ", raised after " + step.text();
      }
    }
    return "";
  }

  /// Computes an event's vector clock: the latest place on each lane that is ordered before it.
  private void setClock(int event) {
    var others = before[event];
    if (others.length == 0) {
      clocks[event] = NO_CLOCK;
      return;
    }
    // A clock may omit the place on the event's own lane.
    boolean nothingNew = laneOf[others[0]] == laneOf[event];
    for (int i = 1; i < others.length && nothingNew; i++) {
      nothingNew = laneOf[others[i]] != NONE && isBefore(others[i], others[0]);
    }
    if (nothingNew) {
      clocks[event] = clocks[others[0]];
      return;
    }
    var clock = new int[ranks * (lanes + 1)];
    for (int other : others) {
      advance(clock, other);
    }
    clocks[event] = clock;
  }

  /// Advances a clock to after an event.
  private void advance(int[] clock, int event) {
    var earlier = clocks[event];
    for (int lane = 0; lane < earlier.length; lane++) {
      clock[lane] = Math.max(clock[lane], earlier[lane]);
    }
    if (laneOf[event] != NONE) {
      clock[laneOf[event]] = Math.max(clock[laneOf[event]], place[event]);
    }
  }
}
