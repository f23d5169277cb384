package braid.schedule.check;

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
    closest(pairs).forEach(pair -> findings.add(finding(pair)));
    return findings;
  }

  /// Returns those of the races whose order would order all others, in that order.
  private List<Pair> closest(List<Pair> pairs) {
    var closest = new ArrayList<Pair>();
    for (int i = 0; i < pairs.size(); i += 2) {
      var found = pairs.get(i);
      var pair = isReversed(found.race()) ? found.reversed() : found;
      if (closest.stream().noneMatch(each -> ends(each, pair))) {
        closest.removeIf(each -> ends(pair, each));
        closest.add(pair);
      }
    }
    return closest;
  }

  /// Returns whether to order one race also orders another one.
  private boolean ends(Pair one, Pair other) {
    return order.orders(one.before(), one.after(), other)
        || order.orders(one.before(), one.after(), other.reversed());
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
    int chunk = step(other).chunk();
    return step(one).chunk() > chunk && chunk != Step.NO_CHUNK;
  }

  private Step step(int event) {
    return wiring.step(order.number(event));
  }

  private boolean isWrittenBefore(Race race) {
    int reads = race.other();
    return races.touches(race.memory()).stream()
        .anyMatch(
            touch ->
                touch.use() == Use.WRITE
                    && order.isStep(touch.event())
                    && order.iteration(touch.event()) == order.iteration(reads)
                    && touch.rows().overlaps(race.rows())
                    && touch.columns().overlaps(race.second().columns())
                    && order.isBefore(touch.event(), reads));
  }

  private Finding finding(Pair pair) {
    var race = pair.race();
    var remedy = remedy(pair);
    return new Finding(
        "race of %s: %s".formatted(kind(race.one()), Finding.withoutNumbers(remedy)),
        order.rank(pair.after()),
        "race on %s: %s and %s have no order; %s"
            .formatted(location(race), describe(race.first()), describe(race.second()), remedy));
  }

  private String kind(int event) {
    if (!order.isStep(event)) {
      return "caller";
    }
    var step = step(event);
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
    int iteration = order.iteration(event);
    return order.isStep(event)
        ? "%s in iteration %d".formatted(wiring.name(order.number(event)), iteration)
        : "the caller's use of `%s` on rank %d %s"
            .formatted(
                touch.port(),
                order.rank(event),
                iteration < Order.ITERATIONS
                    ? "before iteration " + iteration
                    : "after iteration " + (iteration - 1));
  }

  private String remedy(Pair pair) {
    int from = order.rank(pair.before());
    int to = order.rank(pair.after());
    var place = pair.before() == pair.race().one() ? "the first step" : "the second step";
    if (from == to) {
      return "let lane %s wait for a mark of lane %s after %s"
          .formatted(step(pair.after()).lane(), step(pair.before()).lane(), place);
    }
    if (!order.isStep(pair.before())) {
      return "let rank %d wait for a signal that rank %d raises in the iteration"
          .formatted(to, from);
    }
    // A signal of an iteration is waited for in that iteration.
    return order.iteration(pair.before()) < order.iteration(pair.after())
        ? "let rank %d end its iteration after a signal that rank %d raises after its step"
            .formatted(to, from)
        : "let rank %d wait for a signal that rank %d raises after %s".formatted(to, from, place);
  }
}
