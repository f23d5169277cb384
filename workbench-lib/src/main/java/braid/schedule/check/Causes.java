package braid.schedule.check;

import braid.schedule.Lane;
import braid.schedule.Step;
import braid.schedule.Step.Access.Use;
import braid.schedule.Step.After;
import braid.schedule.Step.Mark;
import braid.schedule.Step.Signal;
import braid.schedule.Step.Wait;
import braid.schedule.check.Races.Race;
import braid.schedule.check.Races.Touch;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.Predicate;

/// Finds the causes of races, and what to do about them.
///
/// A signal without a wait, and a wait without a signal, would order some of the races if they had
/// their match. These races follow from the missing match and are not reported. If there are none,
/// no step needs the order: the advice is to remove the step. Otherwise the advice names the place
/// of its match, since without it the races would be left.
///
/// Each other race is a missing order of two events. To order them also orders all races between
/// what comes before the first and what comes after the second, so these are not reported.
final class Causes {
  private final Wiring wiring;
  private final Order order;
  private final Races races;

  /// Races that no missing match explains, in both directions.
  private final List<Pair> unexplained = new ArrayList<>();

  /// By step.
  private final Map<Integer, Finding> unmatched = new TreeMap<>();

  /// Waits for words that no signal raises.
  private final Map<Word, List<Integer>> words = new LinkedHashMap<>();

  /// Races that a signal would order if a step waited for it.
  private final Map<Integer, List<Pair>> bySignal = new HashMap<>();

  /// Races that a wait would order if a signal raised its word.
  private final Map<Word, List<Pair>> byWord = new HashMap<>();

  /// Recognizes races that missing matches explain.
  private Predicate<Pair> explained = _ -> false;

  /// Signals that are of no use, and what is wrong with them.
  private final Map<Integer, String> useless = new LinkedHashMap<>();

  /// The events of a race, in one of the two orders that would end it.
  private record Pair(int before, int after, Race race) {}

  /// A word that a rank waits for.
  private record Word(int rank, String name, int from) {}

  Causes(Wiring wiring, Order order, Races races) {
    this.wiring = wiring;
    this.order = order;
    this.races = races;
    for (var race : races.all()) {
      unexplained.add(new Pair(race.one(), race.other(), race));
      unexplained.add(new Pair(race.other(), race.one(), race));
    }
    for (int number : wiring.blocked()) {
      if (wiring.step(number) instanceof Wait wait) {
        words
            .computeIfAbsent(
                new Word(wiring.rank(number), wait.word(), wait.from()), _ -> new ArrayList<>())
            .add(number);
      }
    }
    checkIndices();
    attribute();
    checkSignals();
    checkBlocked();
    words.forEach(this::checkWaits);
    explain(explained);
    useless.forEach((signal, problem) -> add(signal, problem, ""));
  }

  List<Finding> findings() {
    var findings = new ArrayList<>(unmatched.values());
    findings.addAll(order.deadlocks());
    findings.addAll(races.within());
    closest().forEach(pair -> findings.add(finding(pair.race())));
    return findings;
  }

  /// Adds a mistake of a step.
  ///
  /// @param place a part of the advice that may differ between mistakes of one kind
  private void add(int number, String problem, String place) {
    var text = wiring.name(number) + problem;
    unmatched.put(
        number, new Finding(Finding.withoutNumbers(text), wiring.rank(number), text + place));
  }

  /// Finds signals that raise another word of the rank that waits for them.
  private void checkIndices() {
    var signals = new ArrayList<>(wiring.unneeded());
    signals.addAll(wiring.repeated().keySet());
    signals.addAll(wiring.astray().keySet());
    words
        .entrySet()
        .removeIf(
            word -> {
              int number = word.getValue().getFirst();
              var to = new ArrayList<>(signals);
              to.removeIf(signal -> to(signal) != wiring.rank(number));
              var signal = misdirected((Wait) wiring.step(number), to);
              signal.ifPresent(each -> redirect(each, word.getValue()));
              return signal.isPresent();
            });
  }

  /// Adds a signal that should raise the word of some waits.
  private void redirect(int signal, List<Integer> waits) {
    int first = waits.getFirst();
    add(
        signal,
        " raises the wrong word, since %s never ends; raise %s of rank %d instead"
            .formatted(wiring.name(first), ((Wait) wiring.step(first)).word(), wiring.rank(first)),
        "");
    for (int wait : waits) {
      explain(pair -> orders(order.step(0, signal), order.step(0, wait), pair));
    }
  }

  /// Attributes each race to one signal and one wait that would order it, if there are any: to the
  /// first signal after one event, and to the last wait before the other.
  private void attribute() {
    var signals = new ArrayList<>(wiring.unneeded());
    signals.addAll(wiring.repeated().keySet());
    signals.removeAll(unmatched.keySet());
    for (var pair : unexplained) {
      signals.stream()
          .filter(signal -> isRaisedFor(signal, pair))
          .min(
              Comparator.<Integer>comparingInt(
                      signal -> wiring.rank(signal) == order.rank(pair.before()) ? 0 : 1)
                  .thenComparing(signal -> signal))
          .ifPresent(signal -> bySignal.computeIfAbsent(signal, _ -> new ArrayList<>()).add(pair));
      words.entrySet().stream()
          .filter(word -> word.getValue().stream().anyMatch(wait -> isAwaitedFor(wait, pair)))
          .max(
              Comparator.<Map.Entry<Word, List<Integer>>>comparingInt(
                      word ->
                          (word.getKey().from() == order.rank(pair.before()) ? 2 : 0)
                              + (word.getKey().rank() == order.rank(pair.after()) ? 1 : 0))
                  .thenComparing(word -> word.getValue().getFirst()))
          .ifPresent(
              word -> byWord.computeIfAbsent(word.getKey(), _ -> new ArrayList<>()).add(pair));
    }
  }

  /// Returns whether a wait for a signal could order two events.
  private boolean isRaisedFor(int signal, Pair pair) {
    int raised = order.step(0, signal);
    return order.rank(pair.after()) == to(signal)
        && (order.isStep(pair.after()) || order.iteration(pair.after()) > 0)
        && isUntil(pair.before(), raised)
        && !isUntil(waiting(pair), raised);
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
        && isUntil(order.step(0, wait), pair.after())
        && (!exists || order.isBefore(pair.before(), order.caller(1, from)));
  }

  private void checkSignals() {
    for (int signal : wiring.unneeded()) {
      checkSignal(
          signal,
          " is not waited for",
          "; let rank %d wait for it",
          "; no step needs the order, so remove it");
    }
    wiring
        .repeated()
        .forEach(
            (signal, other) ->
                checkSignal(
                    signal,
                    " raises a word that %s; one signal raises it in an iteration"
                        .formatted(
                            wiring.rank(signal) == wiring.rank(other)
                                ? "the rank has raised before"
                                : "%s raises too".formatted(wiring.name(other))),
                    ": raise another, and let rank %d wait for it",
                    ""));
    useless.putAll(wiring.astray());
    useless.keySet().removeAll(unmatched.keySet());
  }

  /// Checks a signal that no step waits for.
  ///
  /// @param needed advice if races need the signal
  private void checkSignal(int signal, String problem, String needed, String useless) {
    if (unmatched.containsKey(signal)) {
      return;
    }
    int first = Order.NONE;
    for (var pair : bySignal.getOrDefault(signal, List.of())) {
      int waiting = waiting(pair);
      first = first == Order.NONE || order.isBefore(waiting, first) ? waiting : first;
    }
    if (first == Order.NONE) {
      this.useless.put(signal, problem + useless);
      return;
    }
    int raised = order.step(0, signal);
    int waiting = first;
    explained = explained.or(pair -> orders(raised, waiting, pair));
    add(signal, problem + needed.formatted(to(signal)), " " + place(first));
  }

  private int to(int signal) {
    return ((Signal) wiring.step(signal)).to();
  }

  private String place(int event) {
    return order.isStep(event)
        ? "before " + wiring.name(order.number(event))
        : "at the end of its iteration";
  }

  /// Returns whether an event is another or before it.
  private boolean isUntil(int event, int other) {
    return event == other || order.isBefore(event, other);
  }

  /// Returns whether an order of two events would order a race, in this iteration or the next.
  private boolean orders(int before, int after, Pair pair) {
    if (isUntil(pair.before(), before) && isUntil(after, pair.after())) {
      return true;
    }
    int nextBefore = order.next(before);
    int nextAfter = order.next(after);
    return nextBefore != Order.NONE
        && nextAfter != Order.NONE
        && isUntil(pair.before(), nextBefore)
        && isUntil(nextAfter, pair.after());
  }

  /// Leaves out races that have an explanation in one of the two orders.
  private void explain(Predicate<Pair> explained) {
    var done = new HashSet<Race>();
    for (var pair : unexplained) {
      if (explained.test(pair)) {
        done.add(pair.race());
      }
    }
    unexplained.removeIf(pair -> done.contains(pair.race()));
  }

  private void checkBlocked() {
    for (int number : wiring.blocked()) {
      int waiting = order.step(0, number);
      switch (wiring.step(number)) {
        case Wait _ -> {}
        case After after -> {
          add(number, missingMark(number, after), "");
          explained =
              explained.or(
                  pair ->
                      order.rank(pair.before()) == wiring.rank(number)
                          && isUntil(waiting, pair.after()));
        }
        // Library calls order all ranks.
        case Step _ -> explained = explained.or(pair -> isUntil(waiting, pair.after()));
      }
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
  private void checkWaits(Word word, List<Integer> waits) {
    for (int wait : waits) {
      explained = explained.or(pair -> isAwaitedFor(wait, pair));
    }
    int first =
        waits.stream().filter(wait -> !wiring.isMistaken(wait)).findFirst().orElse(Order.NONE);
    if (first == Order.NONE) {
      return;
    }
    var misdirected = misdirected((Wait) wiring.step(first), useless.keySet());
    if (misdirected.isPresent()) {
      useless.remove(misdirected.get());
      redirect(misdirected.get(), waits);
      return;
    }
    var pairs = byWord.getOrDefault(word, List.of());
    if (pairs.isEmpty()) {
      add(first, " never ends: no step raises it and no step needs the order, so remove it", "");
      return;
    }
    int last = Order.NONE;
    for (var pair : pairs) {
      if (order.rank(pair.before()) == word.from()
          && !order.isBefore(order.step(0, first), pair.before())
          && (last == Order.NONE || isLater(pair.before(), last))) {
        last = pair.before();
      }
    }
    add(
        first,
        " never ends: no step raises it; let rank %d signal it".formatted(word.from()),
        last == Order.NONE
            ? ""
            : order.isStep(last)
                ? " after " + wiring.name(order.number(last))
                : " when its iteration begins");
  }

  /// Returns whether an event is the later one of two of a rank; what uses no rows counts as early.
  private boolean isLater(int event, int other) {
    return order.isStep(event) && usesRows(event) && (!order.isStep(other) || event > other);
  }

  private boolean usesRows(int event) {
    return !wiring.step(order.number(event)).accesses(order.rank(event)).isEmpty();
  }

  /// Returns the signal that was probably meant to end a wait.
  private Optional<Integer> misdirected(Wait wait, Collection<Integer> of) {
    var signals = new ArrayList<>(of);
    signals.removeIf(
        number ->
            wiring.rank(number) != wait.from()
                || unmatched.containsKey(number)
                || !((Signal) wiring.step(number)).flag().equals(wait.flag()));
    return signals.stream()
        .filter(number -> wiring.step(number).chunk() == wait.chunk())
        .findFirst()
        .or(() -> signals.stream().findFirst());
  }

  /// Returns those of the races whose order would order all others.
  private List<Pair> closest() {
    var closest = new ArrayList<Pair>();
    for (int i = 0; i < unexplained.size(); i += 2) {
      var pair = directed(unexplained.get(i), unexplained.get(i + 1));
      var reversed = new Pair(pair.after(), pair.before(), pair.race());
      if (closest.stream()
          .noneMatch(
              each ->
                  orders(each.before(), each.after(), pair)
                      || orders(each.before(), each.after(), reversed))) {
        closest.removeIf(
            each ->
                orders(pair.before(), pair.after(), each)
                    || orders(
                        pair.before(),
                        pair.after(),
                        new Pair(each.after(), each.before(), each.race())));
        closest.add(pair);
      }
    }
    return closest;
  }

  /// Returns the events of a race in the order that its remedy makes.
  private Pair directed(Pair pair, Pair reversed) {
    return isReversed(pair.race()) ? reversed : pair;
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
