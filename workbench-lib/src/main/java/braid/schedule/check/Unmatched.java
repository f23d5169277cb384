package braid.schedule.check;

import braid.schedule.Step;
import braid.schedule.Step.After;
import braid.schedule.Step.Mark;
import braid.schedule.Step.Signal;
import braid.schedule.Step.Wait;
import braid.schedule.check.Races.Pair;
import braid.schedule.check.Races.Race;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// Signals without a wait, waits without a signal, and what to do about them.
///
/// Either would order some of the races if it had its match. These races follow from the missing
/// match and are not reported. If there are none, no step needs the order: the advice is to remove
/// the step. Otherwise the advice names the place of its match, since without it the races would be
/// left.
final class Unmatched {
  private final Wiring wiring;
  private final Order order;
  private final Races races;
  private final List<Pair> pairs;
  private final Set<Race> explained = new HashSet<>();

  /// By step.
  private final Map<Integer, Finding> findings = new TreeMap<>();

  /// Waits for words that no signal raises.
  private final Map<Word, List<Integer>> words = new LinkedHashMap<>();

  /// Races that a signal would order if a step waited for it.
  private final Map<Integer, List<Pair>> bySignal = new HashMap<>();

  /// Races that a wait would order if a signal raised its word.
  private final Map<Word, List<Pair>> byWord = new HashMap<>();

  private final Set<Pair> attributed = new HashSet<>();

  /// Events that should wait for signals.
  private final List<Edge> edges = new ArrayList<>();

  /// Signals that are of no use, and what is wrong with them.
  private final Map<Integer, String> useless = new LinkedHashMap<>();

  /// A word that a rank waits for.
  private record Word(int rank, String name, int from) {}

  /// The rank that signals, and the rank that waits.
  private record Ranks(int from, int to) {}

  /// Two events, the first of which should come before the second.
  private record Edge(int before, int after) {}

  /// @param pairs the closest races, in both orders
  Unmatched(Wiring wiring, Order order, Races races, List<Pair> pairs) {
    this.races = races;
    this.wiring = wiring;
    this.order = order;
    this.pairs = pairs;
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
    useless.forEach((signal, problem) -> add(signal, problem, ""));
    explain();
  }

  Collection<Finding> findings() {
    return findings.values();
  }

  /// Returns whether a race follows from a missing match.
  boolean explains(Race race) {
    return explained.contains(race);
  }

  /// Explains the races that the advice would order.
  private void explain() {
    for (var pair : pairs) {
      if (!explained.contains(pair.race())
          && edges.stream().anyMatch(edge -> order.orders(edge.before(), edge.after(), pair))) {
        explained.add(pair.race());
      }
    }
    edges.clear();
  }

  /// Adds a mistake of a step.
  ///
  /// @param place a part of the advice that may differ between mistakes of one kind
  private void add(int number, String problem, String place) {
    var text = wiring.name(number) + problem;
    findings.put(
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
    explain();
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
      edges.add(new Edge(order.step(0, signal), order.step(0, wait)));
    }
  }

  /// Attributes each race to one signal and one wait that would order it, if there are any: to the
  /// first signal after one event, and to the last wait before the other. Those between the ranks
  /// of the two events come first. By way of other ranks only the closest races are compared.
  private void attribute() {
    var signals = new ArrayList<>(wiring.unneeded());
    signals.addAll(wiring.repeated().keySet());
    signals.removeAll(findings.keySet());
    signals.sort(null);
    var direct = new HashMap<Ranks, List<Integer>>();
    for (int signal : signals) {
      direct
          .computeIfAbsent(new Ranks(wiring.rank(signal), to(signal)), _ -> new ArrayList<>())
          .add(signal);
    }
    var directWords = new HashMap<Ranks, List<Word>>();
    for (var word : words.keySet()) {
      directWords
          .computeIfAbsent(new Ranks(word.from(), word.rank()), _ -> new ArrayList<>())
          .add(word);
    }
    for (var pair : direct.isEmpty() && directWords.isEmpty() ? List.<Pair>of() : races.all()) {
      var ranks = new Ranks(order.rank(pair.before()), order.rank(pair.after()));
      attribute(
          pair, direct.getOrDefault(ranks, List.of()), directWords.getOrDefault(ranks, List.of()));
    }
    for (var pair : pairs) {
      attribute(
          pair,
          attributed.contains(pair) ? List.of() : signals,
          attributed.contains(pair) ? List.of() : words.keySet());
    }
  }

  private void attribute(Pair pair, List<Integer> signals, Collection<Word> of) {
    if (explained.contains(pair.race())) {
      return;
    }
    for (int signal : signals) {
      if (isRaisedFor(signal, pair)) {
        bySignal.computeIfAbsent(signal, _ -> new ArrayList<>()).add(pair);
        attributed.add(pair);
        break;
      }
    }
    @Nullable Word last = null;
    int lastWait = Order.NONE;
    for (var word : of) {
      int wait = words.getOrDefault(word, List.of()).getFirst();
      if (wait > lastWait && isAwaitedFor(words.getOrDefault(word, List.of()), pair)) {
        last = word;
        lastWait = wait;
      }
    }
    if (last != null) {
      byWord.computeIfAbsent(last, _ -> new ArrayList<>()).add(pair);
      explained.add(pair.race());
    }
  }

  private boolean isAwaitedFor(List<Integer> waits, Pair pair) {
    for (int wait : waits) {
      if (isAwaitedFor(wait, pair)) {
        return true;
      }
    }
    return false;
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
    useless.keySet().removeAll(findings.keySet());
  }

  /// Checks a signal that no step waits for.
  ///
  /// @param needed advice if races need the signal
  private void checkSignal(int signal, String problem, String needed, String useless) {
    if (findings.containsKey(signal)) {
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
    edges.add(new Edge(order.step(0, signal), first));
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

  private void checkBlocked() {
    for (int number : wiring.blocked()) {
      int waiting = order.step(0, number);
      switch (wiring.step(number)) {
        case Wait _ -> {}
        case After after -> {
          add(number, missingMark(number, after), "");
          explain(
              pair ->
                  order.rank(pair.before()) == wiring.rank(number)
                      && order.isUntil(waiting, pair.after()));
        }
        // Library calls order all ranks.
        case Step _ -> explain(pair -> order.isUntil(waiting, pair.after()));
      }
    }
  }

  private void explain(Predicate<Pair> follows) {
    for (var pair : pairs) {
      if (follows.test(pair)) {
        explained.add(pair.race());
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
                || findings.containsKey(number)
                || !((Signal) wiring.step(number)).flag().equals(wait.flag()));
    return signals.stream()
        .filter(number -> wiring.step(number).chunk() == wait.chunk())
        .findFirst()
        .or(() -> signals.stream().findFirst());
  }
}
