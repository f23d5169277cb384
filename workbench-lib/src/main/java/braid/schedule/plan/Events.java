package braid.schedule.plan;

import braid.schedule.Lane;
import braid.schedule.Step;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// The events of one iteration, numbered: the begins of all ranks' iterations, their ends, then the
/// steps, rank by rank in the order of their programs. The caller uses all memory of a rank before
/// its begin and after its end.
///
/// The events of a chain happen in order. Each lane of a rank is a chain, and its begin and end are
/// one more.
///
/// In many schedules all ranks do the same, relative to their own numbers. The events of rank 0
/// then represent those of all ranks: see [#representative].
final class Events {
  private final int ranks;
  private final Map<Lane, Integer> lanes = new LinkedHashMap<>();

  /// By rank, its first step.
  private final int[] firsts;

  // By event; begins and ends have none of these.
  private int[] rankOf = {};
  private int[] laneOf = {};
  private int[] previous = {};
  private boolean symmetric;

  Events(List<Lane> declared, int ranks) {
    this.ranks = ranks;
    this.firsts = new int[ranks + 1];
    firsts[0] = 2 * ranks;
    declared.forEach(lane -> lanes.put(lane, lanes.size()));
  }

  /// Adds the steps of the next rank.
  void add(int rank, List<Step> steps) {
    int event = firsts[rank];
    int size = event + steps.size();
    firsts[rank + 1] = size;
    if (size > rankOf.length) {
      int length = Math.max(size, 2 * rankOf.length);
      rankOf = Arrays.copyOf(rankOf, length);
      laneOf = Arrays.copyOf(laneOf, length);
      previous = Arrays.copyOf(previous, length);
    }
    steps.forEach(step -> lanes.putIfAbsent(step.lane(), lanes.size()));
    var last = new int[lanes.size()];
    Arrays.fill(last, begin(rank));
    for (var step : steps) {
      int lane = lanes.getOrDefault(step.lane(), 0);
      rankOf[event] = rank;
      laneOf[event] = lane;
      previous[event] = last[lane];
      last[lane] = event++;
    }
  }

  /// Returns whether the programs of all ranks have the same lanes step by step.
  boolean areAlike() {
    for (int rank = 1; rank < ranks; rank++) {
      if (!Arrays.equals(laneOf, firsts[0], firsts[1], laneOf, firsts[rank], firsts[rank + 1])) {
        return false;
      }
    }
    return true;
  }

  /// Lets the events of rank 0 represent those of all ranks.
  void setSymmetric() {
    symmetric = true;
    int steps = steps(0);
    Arrays.setAll(firsts, rank -> firsts[0] + rank * steps);
  }

  boolean isSymmetric() {
    return symmetric;
  }

  /// Returns the event that represents this one: of rank 0 if ranks are symmetric, else itself.
  int representative(int event) {
    return symmetric ? shifted(event, -rank(event)) : event;
  }

  /// Returns the same event of the rank that is some ranks further.
  int shifted(int event, int distance) {
    int rank = rank(event);
    int to = Math.floorMod(rank + distance, ranks);
    return event + (event < firsts[0] ? to - rank : firsts[to] - firsts[rank]);
  }

  /// Returns by how many ranks an event is further than the one that represents it.
  int distance(int event) {
    return symmetric ? rank(event) : 0;
  }

  /// Returns a number that is larger than those of all events that represent others.
  int size() {
    return firsts[symmetric ? 1 : ranks];
  }

  int ranks() {
    return ranks;
  }

  /// Returns the number of chains of a rank.
  int width() {
    return lanes.size() + 1;
  }

  /// Returns the lane that signals the begin and waits at the end.
  Lane edge() {
    return lanes.keySet().stream()
        .filter(lane -> lane.role() == Lane.Role.COMMUNICATION)
        .findFirst()
        .or(() -> lanes.keySet().stream().findFirst())
        .orElseGet(() -> Lane.of("caller", Lane.Role.COMPUTE));
  }

  int begin(int rank) {
    return rank;
  }

  int end(int rank) {
    return ranks + rank;
  }

  /// Returns the first step of a rank.
  int first(int rank) {
    return firsts[rank];
  }

  /// Returns the number of steps of a rank.
  int steps(int rank) {
    return firsts[rank + 1] - firsts[rank];
  }

  boolean isBegin(int event) {
    return event < ranks;
  }

  boolean isEnd(int event) {
    return event >= ranks && event < firsts[0];
  }

  int rank(int event) {
    return event < firsts[0]
        ? event % ranks
        : symmetric ? (event - firsts[0]) / steps(0) : rankOf[event];
  }

  /// Returns the lane of a step, by its number.
  int lane(int event) {
    return laneOf[representative(event)];
  }

  /// Returns the number of an event's chain among those of its rank.
  int chain(int event) {
    return event < firsts[0] ? lanes.size() : lane(event);
  }

  /// Returns a number of an event in its rank, larger than those before it on its chain, from 1 on.
  int place(int event) {
    return event < firsts[0] ? 1 + event / ranks : event - firsts[rank(event)] + 1;
  }

  /// Returns the event before a step on its lane, which may be the begin.
  int previous(int event) {
    return previous[event];
  }

  /// Returns the last step of each lane of a rank.
  int[] lasts(int rank) {
    var last = new int[lanes.size()];
    for (int event = firsts[rank]; event < firsts[rank + 1]; event++) {
      last[laneOf[event]] = event;
    }
    return Arrays.stream(last).filter(event -> event > 0).toArray();
  }
}
