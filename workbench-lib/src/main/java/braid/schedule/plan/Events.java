package braid.schedule.plan;

import braid.schedule.Lane;
import braid.schedule.Program;
import braid.schedule.Step;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.IntFunction;

/// The events of one iteration, numbered rank by rank: the begin of the iteration, the steps in the
/// order of the rank's program, and its end. The caller uses all memory of a rank before its begin
/// and after its end.
final class Events {
  static final int NONE = -1;

  private final int ranks;
  private final Lane edge;
  private final Map<Lane, Integer> lanes = new LinkedHashMap<>();
  private final int[] begins;
  private final List<Step> steps = new ArrayList<>();
  private final int[] rounds;
  private final int[] rankOf;
  private final int[] laneOf;
  private final int[] place;
  private final int[] previous;

  Events(List<Lane> declared, int ranks, IntFunction<Program> programs) {
    this.ranks = ranks;
    declared.forEach(lane -> lanes.put(lane, lanes.size()));
    begins = new int[ranks + 1];
    var perRank = new ArrayList<int[]>();
    for (int rank = 0; rank < ranks; rank++) {
      var program = programs.apply(rank);
      steps.add(BOUNDARY);
      steps.addAll(program.steps());
      steps.add(BOUNDARY);
      perRank.add(program.rounds());
      begins[rank + 1] = steps.size();
    }
    for (var step : steps) {
      if (!step.equals(BOUNDARY)) {
        lanes.putIfAbsent(step.lane(), lanes.size());
      }
    }
    edge =
        lanes.keySet().stream()
            .filter(lane -> lane.role() == Lane.Role.COMMUNICATION)
            .findFirst()
            .or(() -> lanes.keySet().stream().findFirst())
            .orElse(BOUNDARY.lane());
    int size = steps.size();
    rounds = new int[size];
    rankOf = new int[size];
    laneOf = new int[size];
    place = new int[size];
    previous = new int[size];
    for (int rank = 0; rank < ranks; rank++) {
      place(rank, perRank.get(rank));
    }
  }

  /// Stands for the caller.
  private static final Step BOUNDARY = new Step.Mark(Lane.of("caller", Lane.Role.COMPUTE), -1, -1);

  private void place(int rank, int[] ofSteps) {
    var last = new int[lanes.size() + 1];
    Arrays.fill(last, begins[rank]);
    var places = new int[lanes.size() + 1];
    for (int event = begins[rank]; event < begins[rank + 1]; event++) {
      rankOf[event] = rank;
      previous[event] = NONE;
      if (isBegin(event) || isEnd(event)) {
        laneOf[event] = ranks * lanes.size() + rank;
        place[event] = isBegin(event) ? 1 : 2;
      } else {
        rounds[event] = ofSteps[event - begins[rank] - 1];
        int lane = Objects.requireNonNull(lanes.get(steps.get(event).lane()));
        laneOf[event] = rank * lanes.size() + lane;
        place[event] = ++places[lane];
        previous[event] = last[lane];
        last[lane] = event;
      }
    }
  }

  int size() {
    return steps.size();
  }

  /// Returns the number of lanes of all ranks, the caller's included.
  int lanes() {
    return ranks * (lanes.size() + 1);
  }

  int lanesOfRank() {
    return lanes.size();
  }

  /// Returns the number of a step's lane among those of its rank.
  int laneOfRank(int event) {
    return laneOf[event] % lanes.size();
  }

  int ranks() {
    return ranks;
  }

  /// Returns the lane that signals the begin and waits at the end.
  Lane edge() {
    return edge;
  }

  int begin(int rank) {
    return begins[rank];
  }

  int end(int rank) {
    return begins[rank + 1] - 1;
  }

  boolean isBegin(int event) {
    return begins[rankOf[event]] == event;
  }

  boolean isEnd(int event) {
    return end(rankOf[event]) == event;
  }

  int rank(int event) {
    return rankOf[event];
  }

  Step step(int event) {
    return steps.get(event);
  }

  List<Step.Access> accesses(int event) {
    return steps.get(event).accesses(rankOf[event]);
  }

  int round(int event) {
    return rounds[event];
  }

  /// Returns the number of an event's lane.
  int lane(int event) {
    return laneOf[event];
  }

  /// Returns the number of an event among those of its lane, from 1 on.
  int place(int event) {
    return place[event];
  }

  /// Returns the event before a step on its lane, which may be the begin; [#NONE] for begin and
  /// end.
  int previous(int event) {
    return previous[event];
  }
}
