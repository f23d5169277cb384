package braid.schedule;

import braid.schedule.Step.Access;
import braid.schedule.Step.After;
import braid.schedule.Step.Attend;
import braid.schedule.Step.AttendGradient;
import braid.schedule.Step.Mark;
import braid.schedule.Step.Merge;
import braid.schedule.Step.Signal;
import braid.schedule.Step.Wait;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/// The order of a schedule by brute force: all pairs of events of two iterations, by reachability.
/// Shares no code with the check. Two schedules of the same steps are equivalent if any two
/// conflicting uses of the same rows or word have the same order in both: then all their runs
/// compute the same.
final class Interleaving {
  private static final int ITERATIONS = 2;

  private final Schedule schedule;
  private final List<List<Step>> steps = new ArrayList<>();
  private final List<List<Integer>> before = new ArrayList<>();

  /// By event, all events before it; empty if the schedule does not match or ends in a deadlock.
  private final List<BitSet> reached = new ArrayList<>();

  /// Events by step and iteration. Steps are distinguished by identity.
  private final List<Map<Step, Integer>> events = new ArrayList<>();

  private final List<List<Integer>> callers = new ArrayList<>();
  private boolean matches = true;

  Interleaving(Schedule schedule) {
    this.schedule = schedule;
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      steps.add(schedule.steps(rank));
    }
    for (int iteration = 0; iteration < ITERATIONS; iteration++) {
      events.add(new IdentityHashMap<>());
    }
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      addLanes(rank);
    }
    for (var of : events) {
      addSignals(of);
    }
    if (matches) {
      reach();
    }
  }

  /// Returns whether every wait has one signal and no ranks wait for each other.
  boolean runs() {
    return matches;
  }

  private int event(List<Integer> predecessors) {
    before.add(new ArrayList<>(predecessors));
    return before.size() - 1;
  }

  private void addLanes(int rank) {
    var callersOfRank = new ArrayList<Integer>();
    int caller = event(List.of());
    callersOfRank.add(caller);
    for (var of : events) {
      var last = new HashMap<String, Integer>();
      var marks = new HashMap<Integer, Integer>();
      for (var step : steps.get(rank)) {
        int event = event(List.of(last.getOrDefault(step.lane().name(), caller)));
        last.put(step.lane().name(), event);
        of.put(step, event);
        if (step instanceof Mark mark) {
          marks.put(mark.number(), event);
        } else if (step instanceof After after) {
          var mark = marks.get(after.mark());
          if (mark == null) {
            matches = false;
          } else {
            before.get(event).add(mark);
          }
        }
      }
      int end = event(List.copyOf(last.values()));
      before.get(end).add(caller);
      caller = end;
      callersOfRank.add(caller);
    }
    callers.add(callersOfRank);
  }

  private void addSignals(Map<Step, Integer> of) {
    var raised = new HashMap<String, Integer>();
    var awaited = new HashMap<String, List<Integer>>();
    for (int rank = 0; rank < steps.size(); rank++) {
      for (var step : steps.get(rank)) {
        if (step instanceof Signal signal) {
          var word = "%s %d %d from %d".formatted(signal.flag(), signal.index(), signal.to(), rank);
          matches &= raised.put(word, eventOf(of, step)) == null;
        } else if (step instanceof Wait wait) {
          awaited
              .computeIfAbsent(
                  "%s %d %d from %d".formatted(wait.flag(), wait.index(), rank, wait.from()),
                  _ -> new ArrayList<>())
              .add(eventOf(of, step));
        }
      }
    }
    matches &= raised.keySet().equals(awaited.keySet());
    if (matches) {
      awaited.forEach(
          (word, waits) ->
              waits.forEach(
                  wait -> before.get(wait).add(Objects.requireNonNull(raised.get(word)))));
    }
  }

  /// Computes the events before each event as a fixed point; an event before itself is a deadlock.
  private void reach() {
    for (var direct : before) {
      var set = new BitSet();
      direct.forEach(set::set);
      reached.add(set);
    }
    for (boolean more = true; more; ) {
      more = false;
      for (int event = 0; event < before.size(); event++) {
        var set = reached.get(event);
        int count = set.cardinality();
        for (int other : before.get(event)) {
          set.or(reached.get(other));
        }
        more |= set.cardinality() > count;
      }
    }
    for (int event = 0; event < before.size(); event++) {
      matches &= !reached.get(event).get(event);
    }
  }

  private record Use(Object of, int iteration, int rank, Access access) {}

  /// Two uses of the same rows, the first before the second.
  record Pair(Object first, int iteration, Object second, int secondIteration) {}

  /// Returns every ordered pair of conflicting uses.
  List<Pair> conflicts() {
    var uses = new HashMap<String, List<Use>>();
    for (int rank = 0; rank < steps.size(); rank++) {
      for (int iteration = 0; iteration < ITERATIONS; iteration++) {
        for (var step : steps.get(rank)) {
          for (var access : step.accesses(rank)) {
            use(uses, new Use(step, iteration, rank, access));
          }
        }
      }
      for (int iteration = 0; iteration <= ITERATIONS; iteration++) {
        // Between iterations a rank's memory belongs to its caller.
        for (var buffer : schedule.buffers()) {
          use(uses, new Use(rank, iteration, rank, new Access(buffer.on(rank), Access.Use.WRITE)));
        }
      }
    }
    var pairs = new ArrayList<Pair>();
    for (var sameBuffer : uses.values()) {
      for (var one : sameBuffer) {
        for (var other : sameBuffer) {
          if (one.access().use().conflicts(other.access().use())
              && one.access().region().overlaps(other.access().region())
              && isBefore(one, other)) {
            pairs.add(new Pair(one.of(), one.iteration(), other.of(), other.iteration()));
          }
        }
      }
    }
    return pairs;
  }

  private static void use(Map<String, List<Use>> uses, Use use) {
    var region = use.access().region();
    uses.computeIfAbsent(region.buffer().name() + "@" + region.rank(), _ -> new ArrayList<>())
        .add(use);
  }

  private boolean isBefore(Use one, Use other) {
    return reached
        .get(eventOf(other.of(), other.iteration()))
        .get(eventOf(one.of(), one.iteration()));
  }

  private static int eventOf(Map<Step, Integer> of, Step step) {
    return Objects.requireNonNull(of.get(step));
  }

  private int eventOf(Object of, int iteration) {
    return of instanceof Step step
        ? eventOf(events.get(iteration), step)
        : callers.get((Integer) of).get(iteration);
  }

  /// Returns whether this schedule orders all pairs of another schedule of the same steps in the
  /// same way, or in either way if they add keys to one attention or to the same gradients, and
  /// raises a word again only after all of its waits.
  boolean keeps(List<Pair> pairs) {
    return matches
        && pairs.stream()
            .allMatch(
                pair -> {
                  int first = eventOf(pair.first(), pair.iteration());
                  int second = eventOf(pair.second(), pair.secondIteration());
                  return reached.get(second).get(first)
                      || ((addKeysToOneAttention(pair) || addToGradients(pair))
                          && reached.get(first).get(second));
                })
        && raisesSeenWords();
  }

  /// Returns whether both steps add keys to one attention, of some of its keys or of all.
  private static boolean addKeysToOneAttention(Pair pair) {
    return pair.iteration() == pair.secondIteration()
        && pair.first() instanceof Attend one
        && one.continued()
        && switch (pair.second()) {
          case Attend other ->
              other.continued()
                  && one.result().output().buffer().equals(other.result().output().buffer());
          case Merge merge ->
              merge.parts().contains(one.result()) && merge.result().equals(one.result());
          default -> false;
        };
  }

  private static boolean addToGradients(Pair pair) {
    return pair.iteration() == pair.secondIteration()
        && pair.first() instanceof AttendGradient one
        && pair.second() instanceof AttendGradient other
        && (!one.result().query().overlaps(other.result().query())
            || (one.continuesQuery() && other.continuesQuery()))
        && ((!one.result().key().overlaps(other.result().key())
                && !one.result().value().overlaps(other.result().value()))
            || (one.continuesKeys() && other.continuesKeys()));
  }

  private boolean raisesSeenWords() {
    for (int to = 0; to < steps.size(); to++) {
      for (var step : steps.get(to)) {
        if (step instanceof Wait wait) {
          for (var other : steps.get(wait.from())) {
            if (other instanceof Signal signal
                && signal.to() == to
                && signal.flag().equals(wait.flag())
                && signal.index() == wait.index()
                && !reached.get(eventOf(other, 1)).get(eventOf(step, 0))) {
              return false;
            }
          }
        }
      }
    }
    return true;
  }
}
