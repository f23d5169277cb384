package braid.schedule.check;

import braid.schedule.Lane;
import braid.schedule.Step;
import braid.schedule.Step.Access.Use;
import braid.schedule.check.Races.Pair;
import braid.schedule.check.Races.Race;
import braid.schedule.check.Races.Touch;
import java.util.ArrayList;
import java.util.List;

/// Finds the causes of races, and what to do about them.
///
/// A race is a missing order of two events. To order them also orders all races between what comes
/// before the first and what comes after the second, so these are not reported. Neither are races
/// that follow from a missing match: see [Unmatched].
final class Causes {
  private final Wiring wiring;
  private final Order order;
  private final Races races;

  Causes(Wiring wiring, Order order, Races races) {
    this.wiring = wiring;
    this.order = order;
    this.races = races;
  }

  List<Finding> findings() {
    var pairs = races.closest();
    var unmatched = new Unmatched(wiring, order, races, pairs);
    var findings = new ArrayList<>(unmatched.findings());
    findings.addAll(order.deadlocks());
    findings.addAll(races.within());
    pairs.removeIf(pair -> unmatched.explains(pair.race()));
    closest(pairs).forEach(pair -> findings.add(finding(pair.race())));
    return findings;
  }

  /// Returns those of the races whose order would order all others.
  private List<Pair> closest(List<Pair> pairs) {
    var closest = new ArrayList<Pair>();
    for (int i = 0; i < pairs.size(); i += 2) {
      var found = pairs.get(i);
      var pair = isReversed(found.race()) ? found.reversed() : found;
      var reversed = pair.reversed();
      if (closest.stream()
          .noneMatch(
              each ->
                  order.orders(each.before(), each.after(), pair)
                      || order.orders(each.before(), each.after(), reversed))) {
        closest.removeIf(
            each ->
                order.orders(pair.before(), pair.after(), each)
                    || order.orders(pair.before(), pair.after(), each.reversed()));
        closest.add(pair);
      }
    }
    return closest;
  }

  /// Returns whether the second event of a race should come first.
  private boolean isReversed(Race race) {
    int one = race.one();
    int other = race.other();
    if (!order.isStep(one)
        || !order.isStep(other)
        || order.iteration(one) != order.iteration(other)) {
      return false;
    }
    if (order.rank(one) == order.rank(other)) {
      // A mark comes earlier in the rank's steps.
      return order.number(one) > order.number(other);
    }
    if (race.second().use() != Use.WRITE) {
      // The write comes second if the rows that are read have their value from an earlier one.
      return race.first().use() == Use.WRITE && isWrittenBefore(race);
    }
    int chunk = chunk(one);
    return chunk > chunk(other) && chunk(other) != Step.NO_CHUNK;
  }

  private int chunk(int event) {
    return wiring.step(order.number(event)).chunk();
  }

  private boolean isWrittenBefore(Race race) {
    int reads = race.other();
    return races.touches(race.memory()).stream()
        .anyMatch(
            touch ->
                touch.use() == Use.WRITE
                    && order.isStep(touch.event())
                    && order.iteration(touch.event()) == order.iteration(reads)
                    && touch.start() < race.rows().end()
                    && race.rows().start() < touch.end()
                    && touch.columns().overlaps(race.second().columns())
                    && order.isBefore(touch.event(), reads));
  }

  private Finding finding(Race race) {
    var remedy = remedy(race);
    int rank = order.rank(isReversed(race) ? race.one() : race.other());
    return new Finding(
        "race of %s: %s".formatted(kind(race.one()), Finding.withoutNumbers(remedy)),
        rank,
        "race on %s: %s and %s have no order; %s"
            .formatted(location(race), describe(race.first()), describe(race.second()), remedy));
  }

  private String kind(int event) {
    if (!order.isStep(event)) {
      return "caller";
    }
    var step = wiring.step(order.number(event));
    return step.getClass().getSimpleName() + Finding.withoutNumbers(step.lane().name());
  }

  private static String location(Race race) {
    var memory = race.memory();
    var rows = race.rows();
    return memory.words()
        ? "signal %s[%d] of rank %d".formatted(memory.name(), rows.start(), memory.rank())
        : "%s of rank %d, rows %d..%d"
            .formatted(memory.name(), memory.rank(), rows.start(), rows.end() - 1);
  }

  private String describe(Touch touch) {
    int event = touch.event();
    return order.isStep(event)
        ? "%s (iteration %d)".formatted(wiring.name(order.number(event)), order.iteration(event))
        : "the caller's use of `%s` on rank %d %s"
            .formatted(touch.of(), order.rank(event), when(order.iteration(event)));
  }

  private static String when(int iteration) {
    return iteration < Order.ITERATIONS
        ? "before iteration " + iteration
        : "after iteration " + (iteration - 1);
  }

  private String remedy(Race race) {
    boolean reversed = isReversed(race);
    int before = reversed ? race.other() : race.one();
    int after = reversed ? race.one() : race.other();
    int from = order.rank(before);
    int to = order.rank(after);
    var step = reversed ? "the second step" : "the first step";
    if (from == to) {
      return "let lane %s wait for a mark of lane %s after %s"
          .formatted(lane(after), lane(before), step);
    }
    if (!order.isStep(before)) {
      return "let rank %d wait for a signal that rank %d raises in the iteration"
          .formatted(to, from);
    }
    // A signal of an iteration is waited for in that iteration.
    return order.iteration(before) < order.iteration(after)
        ? "let rank %d end its iteration after a signal that rank %d raises after its step"
            .formatted(to, from)
        : "let rank %d wait for a signal that rank %d raises after %s".formatted(to, from, step);
  }

  private Lane lane(int event) {
    return wiring.step(order.number(event)).lane();
  }
}
