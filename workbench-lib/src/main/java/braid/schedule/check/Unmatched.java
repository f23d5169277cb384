package braid.schedule.check;

import braid.schedule.Step.After;
import braid.schedule.Step.Mark;
import braid.schedule.Step.Signal;
import braid.schedule.Step.Wait;
import braid.schedule.check.Races.Pair;
import braid.schedule.check.Races.Race;
import braid.schedule.check.Wiring.Idle;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.BiFunction;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/// Signals without a wait, waits without a signal, and what to do about them.
///
/// Either would order some of the races if it had its match. These races follow from the missing
/// match and are not reported. If there are none, no step needs the order: the advice is to remove
/// the step. Otherwise the advice names the place of its match, since without it the races would be
/// left.
final class Unmatched {
  private final Wiring wiring;
  private final Order order;
  private final List<Pair> pairs;
  private final Set<Race> explained = new HashSet<>();

  /// By step.
  private final Map<Integer, Finding> findings = new TreeMap<>();

  /// Waits for words that no signal raises, by word.
  private final List<List<Integer>> words;

  /// Signals of no effect.
  private final SortedMap<Integer, Idle> idle;

  /// Races that a signal, or the first wait for a word, would order if it had its match.
  private final Map<Integer, List<Pair>> attributed = new HashMap<>();

  /// The rank that signals, and the rank that waits.
  private record Ranks(int from, int to) {}

  /// @param pairs the closest races, in both orders
  Unmatched(Wiring wiring, Order order, Races races, List<Pair> pairs) {
    this.wiring = wiring;
    this.order = order;
    this.pairs = pairs;
    this.words = new ArrayList<>(wiring.unraised());
    this.idle = new TreeMap<>(wiring.idle());
    words.removeIf(
        waits -> isMisdirected(waits, signal -> to(signal) == wiring.rank(waits.getFirst())));
    if (!words.isEmpty() || !idle.isEmpty()) {
      attribute(races);
    }
    idle.entrySet().removeIf(signal -> isNeeded(signal.getKey(), signal.getValue()));
    wiring.blocked().forEach(this::checkBlocked);
    words.forEach(this::checkWaits);
    idle.forEach((signal, each) -> add(signal, each.problem() + each.useless(), ""));
  }

  Collection<Finding> findings() {
    return findings.values();
  }

  /// Returns whether a race follows from a missing match.
  boolean explains(Race race) {
    return explained.contains(race);
  }

  /// Explains the races that advice would order.
  private void explain(int before, int after) {
    explain(pair -> order.orders(before, after, pair));
  }

  private void explain(Predicate<Pair> follows) {
    for (var pair : pairs) {
      if (!explained.contains(pair.race()) && follows.test(pair)) {
        explained.add(pair.race());
      }
    }
  }

  /// Adds a mistake of a step.
  ///
  /// @param place a part of the advice that may differ between mistakes of one kind
  private void add(int number, String problem, String place) {
    var text = wiring.name(number) + problem;
    findings.put(
        number, new Finding(Finding.withoutNumbers(text), wiring.rank(number), text + place));
  }

  /// Returns whether some waits need only that a signal of no effect raises their word.
  private boolean isMisdirected(List<Integer> waits, Predicate<Integer> possible) {
    int first = waits.getFirst();
    var wait = (Wait) wiring.step(first);
    var signals =
        idle.keySet().stream()
            .filter(possible)
            .filter(signal -> wiring.rank(signal) == wait.from())
            .filter(signal -> ((Signal) wiring.step(signal)).flag().equals(wait.flag()))
            .toList();
    if (signals.isEmpty()) {
      return false;
    }
    int signal =
        signals.stream()
            .filter(each -> wiring.step(each).chunk() == wait.chunk())
            .findFirst()
            .orElse(signals.getFirst());
    idle.remove(signal);
    add(
        signal,
        " raises the wrong word, since %s never ends; raise %s of rank %d instead"
            .formatted(wiring.name(first), wait.word(), wiring.rank(first)),
        "");
    waits.forEach(each -> explain(order.step(0, signal), order.step(0, each)));
    return true;
  }

  /// Attributes each race to one signal and one wait that would order it, if there are any: to the
  /// first signal after one event, and to the last wait before the other. Those between the ranks
  /// of the two events come first. By way of other ranks only the closest races are compared.
  private void attribute(Races races) {
    var direct =
        races.all().stream()
            .collect(
                Collectors.groupingBy(
                    pair -> new Ranks(order.rank(pair.before()), order.rank(pair.after()))));
    attribute((from, to) -> direct.getOrDefault(new Ranks(from, to), List.of()));
    var rest = new LinkedHashSet<>(pairs);
    attributed.values().forEach(taken -> taken.forEach(rest::remove));
    attribute((_, _) -> rest);
  }

  private void attribute(BiFunction<Integer, Integer, Collection<Pair>> pairs) {
    for (var waits : words.reversed()) {
      int first = waits.getFirst();
      for (var pair : pairs.apply(((Wait) wiring.step(first)).from(), wiring.rank(first))) {
        if (!explained.contains(pair.race())
            && waits.stream().anyMatch(wait -> isAwaitedFor(wait, pair))) {
          attributed.computeIfAbsent(first, _ -> new ArrayList<>()).add(pair);
          explained.add(pair.race());
        }
      }
    }
    var signals = new HashSet<Pair>();
    idle.forEach(
        (signal, each) -> {
          if (!each.needed().isEmpty()) {
            for (var pair : pairs.apply(wiring.rank(signal), to(signal))) {
              if (!explained.contains(pair.race())
                  && isRaisedFor(signal, pair)
                  && signals.add(pair)) {
                attributed.computeIfAbsent(signal, _ -> new ArrayList<>()).add(pair);
              }
            }
          }
        });
  }

  /// Returns whether a wait for a signal could order two events.
  private boolean isRaisedFor(int signal, Pair pair) {
    int raised = order.step(0, signal);
    return order.rank(pair.after()) == to(signal)
        && (order.isStep(pair.after()) || order.iteration(pair.after()) > 0)
        && order.isUntil(pair.before(), raised)
        && !order.isUntil(waiting(pair), raised);
  }

  /// Returns the event that has to wait in the first iteration.
  private int waiting(Pair pair) {
    return order.iteration(pair.after()) == 0
        ? pair.after()
        : order.caller(1, order.rank(pair.after()));
  }

  /// Returns whether a signal for a wait could order two events.
  private boolean isAwaitedFor(int wait, Pair pair) {
    int from = ((Wait) wiring.step(wait)).from();
    boolean exists = from >= 0 && from < wiring.schedule().ranks();
    return order.rank(pair.before()) != wiring.rank(wait)
        && order.isUntil(order.step(0, wait), pair.after())
        && (!exists || order.isBefore(pair.before(), order.caller(1, from)));
  }

  /// Reports a signal that races need.
  private boolean isNeeded(int signal, Idle mistake) {
    var waiting =
        attributed.getOrDefault(signal, List.of()).stream()
            .map(this::waiting)
            .reduce((first, event) -> order.isBefore(event, first) ? event : first);
    waiting.ifPresent(
        event -> {
          explain(order.step(0, signal), event);
          add(
              signal,
              mistake.problem() + mistake.needed().formatted(to(signal)),
              order.isStep(event)
                  ? " before " + wiring.name(order.number(event))
                  : " at the end of its iteration");
        });
    return waiting.isPresent();
  }

  private int to(int signal) {
    return ((Signal) wiring.step(signal)).to();
  }

  private void checkBlocked(int number) {
    int waiting = order.step(0, number);
    if (wiring.step(number) instanceof After after) {
      add(number, missingMark(number, after), "");
      explain(
          pair ->
              order.rank(pair.before()) == wiring.rank(number)
                  && order.isUntil(waiting, pair.after()));
    } else {
      // Library calls order all ranks.
      explain(pair -> order.isUntil(waiting, pair.after()));
    }
  }

  private String missingMark(int number, After after) {
    int end = wiring.first(wiring.rank(number) + 1);
    for (int later = number + 1; later < end; later++) {
      if (wiring.step(later) instanceof Mark mark && mark.number() == after.mark()) {
        return " comes before %s in the rank's steps; move it, and the steps of its lane after it, behind the mark"
            .formatted(wiring.name(later));
      }
    }
    return " has no mark %d before it; set the mark earlier in the rank's steps"
        .formatted(after.mark());
  }

  /// Checks the waits for a word that no signal raises.
  private void checkWaits(List<Integer> waits) {
    int first =
        waits.stream().filter(wait -> !wiring.isMistaken(wait)).findFirst().orElse(Order.NONE);
    if (first == Order.NONE || isMisdirected(waits, _ -> true)) {
      return;
    }
    var needing = attributed.getOrDefault(waits.getFirst(), List.of());
    if (needing.isEmpty()) {
      add(first, " never ends: no step raises it and no step needs the order, so remove it", "");
      return;
    }
    int from = ((Wait) wiring.step(first)).from();
    var place =
        needing.stream()
            .map(Pair::before)
            .filter(event -> order.rank(event) == from)
            .filter(event -> !order.isBefore(order.step(0, first), event))
            .reduce((last, event) -> isLater(event, last) ? event : last)
            .map(
                event ->
                    order.isStep(event)
                        ? " after " + wiring.name(order.number(event))
                        : " when its iteration begins");
    add(
        first,
        " never ends: no step raises it; let rank %d signal it".formatted(from),
        place.orElse(""));
  }

  /// Returns whether an event is the later one of two of a rank; what uses no rows counts as early.
  private boolean isLater(int event, int other) {
    return order.isStep(event)
        && !wiring.step(order.number(event)).accesses(order.rank(event)).isEmpty()
        && (!order.isStep(other) || event > other);
  }
}
