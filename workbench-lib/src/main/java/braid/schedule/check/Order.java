package braid.schedule.check;

import braid.schedule.Step;
import braid.schedule.Step.After;
import braid.schedule.Step.LibraryCall;
import braid.schedule.Step.Wait;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Optional;
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

  private static final int NONE = -1;
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
  private int[] sorted = {};
  private @Nullable String deadlock;

  Order(Wiring wiring) {
    this.wiring = wiring;
    this.size = wiring.size();
    this.ranks = wiring.schedule().ranks();
    this.lanes = wiring.schedule().lanes().size();
    int events =
        ITERATIONS * size + (ITERATIONS + 1) * ranks + ITERATIONS * wiring.meetings().size();
    this.before = new int[events][];
    this.hostWaits = new int[events][];
    this.laneOf = new int[events];
    this.place = new int[events];
    this.clocks = new int[events][];
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
    if (sort()) {
      setClocks();
    }
  }

  /// Describes a cycle of ranks that wait for each other, with their steps.
  Optional<String> deadlock() {
    return Optional.ofNullable(deadlock);
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

  /// Sorts the events; finds a cycle otherwise.
  private boolean sort() {
    var begun = new boolean[before.length];
    var done = new boolean[before.length];
    var next = new int[before.length];
    var stack = new int[before.length];
    sorted = new int[before.length];
    int count = 0;
    for (int root = 0; root < before.length; root++) {
      int depth = 0;
      if (!begun[root]) {
        stack[depth++] = root;
        begun[root] = true;
      }
      while (depth > 0) {
        int event = stack[depth - 1];
        int other = before(event, next[event]++);
        if (other == NONE) {
          done[event] = true;
          sorted[count++] = event;
          depth--;
        } else if (!begun[other]) {
          begun[other] = true;
          stack[depth++] = other;
        } else if (!done[other]) {
          deadlock = describe(Arrays.copyOf(stack, depth), other);
          return false;
        }
      }
    }
    return true;
  }

  private int before(int event, int index) {
    int direct = before[event].length;
    if (index < direct) {
      return before[event][index];
    }
    var waited = hostWaits[event];
    return waited != null && index - direct < waited.length ? waited[index - direct] : NONE;
  }

  /// Describes the cycle at the end of a path: each event waits for the next, and the last one for
  /// `first`.
  private String describe(int[] path, int first) {
    var cycle = new ArrayList<String>();
    int begin = 0;
    while (path[begin] != first) {
      begin++;
    }
    for (int i = begin; i < path.length; i++) {
      int event = path[i];
      int target = i + 1 < path.length ? path[i + 1] : first;
      if (isStep(event) && !isLanePredecessor(event, target)) {
        cycle.add(
            switch (wiring.step(number(event))) {
              case Wait wait ->
                  "rank %d waits on lane %s for signal %s from rank %d"
                      .formatted(rank(event), wait.lane(), wait.word(), wait.from());
              case After after ->
                  "rank %d waits on lane %s for mark %d"
                      .formatted(rank(event), after.lane(), after.mark());
              case LibraryCall call when before[event][1] == target ->
                  "rank %d waits on lane %s for all ranks to reach %s"
                      .formatted(rank(event), call.lane(), call.text());
              case Step step ->
                  "rank %d enqueues %s on lane %s only after a library call that the host waits for"
                      .formatted(rank(event), step.text(), step.lane());
            });
      }
    }
    return "deadlock: %s; each waits for the next, and the last for the first"
        .formatted(String.join("; ", cycle));
  }

  private boolean isLanePredecessor(int event, int other) {
    return before[event][0] == other;
  }

  /// Computes each event's vector clock: the latest place on each lane that is ordered before it.
  private void setClocks() {
    for (int event : sorted) {
      var others = before[event];
      if (others.length == 0) {
        clocks[event] = NO_CLOCK;
        continue;
      }
      // A clock may omit the place on the event's own lane.
      boolean sameLane = laneOf[others[0]] == laneOf[event];
      boolean nothingNew = sameLane;
      for (int i = 1; i < others.length && nothingNew; i++) {
        nothingNew = laneOf[others[i]] != NONE && isBefore(others[i], others[0]);
      }
      if (nothingNew) {
        clocks[event] = clocks[others[0]];
        continue;
      }
      var clock = new int[ranks * (lanes + 1)];
      for (int other : others) {
        var earlier = clocks[other];
        for (int lane = 0; lane < earlier.length; lane++) {
          clock[lane] = Math.max(clock[lane], earlier[lane]);
        }
        if (laneOf[other] != NONE) {
          clock[laneOf[other]] = Math.max(clock[laneOf[other]], place[other]);
        }
      }
      clocks[event] = clock;
    }
  }
}
