package braid.schedule.check;

import braid.schedule.Flag;
import braid.schedule.Lane;
import braid.schedule.Schedule;
import braid.schedule.Step;
import braid.schedule.Step.After;
import braid.schedule.Step.LibraryCall;
import braid.schedule.Step.Mark;
import braid.schedule.Step.Signal;
import braid.schedule.Step.Wait;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.IntStream;

/// Numbers the steps of all ranks, and matches each wait with its signal, each after with its mark,
/// and the library calls of all ranks. Steps without a match are left to [Causes], which knows what
/// would be ordered by them.
final class Wiring {
  static final int NONE = -1;

  private final Schedule schedule;
  private final List<Step> steps = new ArrayList<>();
  private final int[] firsts;
  private final Map<Lane, Integer> lanes = new HashMap<>();
  private final List<int[]> meetings = new ArrayList<>();
  private final List<Finding> findings = new ArrayList<>();

  /// Afters and library calls that wait for what no step does.
  private final List<Integer> blocked = new ArrayList<>();

  /// Waits for words that no signal raises, by word.
  private final List<List<Integer>> unraised = new ArrayList<>();

  /// Signals of no effect, and what is wrong with them.
  private final SortedMap<Integer, Idle> idle = new TreeMap<>();

  /// Steps with a mistake of their own.
  private final BitSet mistaken = new BitSet();

  private final int[] rankOf;
  private final int[] releasedBy;
  private final int[] meetingOf;

  /// A signal word of a rank.
  private record Word(int rank, String flag, int index) {}

  /// Steps that raise a word, and steps that wait for it.
  private record Users(List<Integer> signals, List<Integer> waits) {}

  /// A mistake of a signal.
  ///
  /// @param needed advice if a step needs the order; empty if no wait can help
  /// @param useless advice if no step needs it
  record Idle(String problem, String needed, String useless) {}

  Wiring(Schedule schedule) {
    this.schedule = schedule;
    this.firsts = new int[schedule.ranks() + 1];
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      steps.addAll(schedule.steps(rank));
      firsts[rank + 1] = steps.size();
    }
    schedule.lanes().forEach(lane -> lanes.put(lane, lanes.size()));
    for (var step : steps) {
      lanes.putIfAbsent(step.lane(), lanes.size());
    }
    rankOf = new int[steps.size()];
    releasedBy = new int[steps.size()];
    meetingOf = new int[steps.size()];
    Arrays.fill(releasedBy, NONE);
    Arrays.fill(meetingOf, NONE);
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      Arrays.fill(rankOf, firsts[rank], firsts[rank + 1], rank);
    }
  }

  /// Matches the steps, and returns the mistakes of those that no match can help.
  List<Finding> match() {
    matchMarks();
    matchWords();
    matchCalls();
    return findings;
  }

  List<Integer> blocked() {
    return blocked;
  }

  List<List<Integer>> unraised() {
    return unraised;
  }

  SortedMap<Integer, Idle> idle() {
    return idle;
  }

  /// Returns whether a step has a mistake of its own, which was found.
  boolean isMistaken(int number) {
    return mistaken.get(number);
  }

  Schedule schedule() {
    return schedule;
  }

  int size() {
    return steps.size();
  }

  Step step(int number) {
    return steps.get(number);
  }

  int rank(int number) {
    return rankOf[number];
  }

  /// Returns the number of a rank's first step; for `ranks`, the number of all steps.
  int first(int rank) {
    return firsts[rank];
  }

  int lane(int number) {
    return lanes.getOrDefault(steps.get(number).lane(), NONE);
  }

  /// Returns the number of lanes, with those that steps use without a declaration.
  int laneCount() {
    return lanes.size();
  }

  /// Returns the signal of a wait or the mark of an after; [#NONE] for other steps.
  int releasedBy(int number) {
    return releasedBy[number];
  }

  /// Returns the index of a library call among those of its rank; [#NONE] for other steps.
  int meetingOf(int number) {
    return meetingOf[number];
  }

  /// Returns the meetings of library calls, each by rank.
  List<int[]> meetings() {
    return meetings;
  }

  String name(int number) {
    int rank = rankOf[number];
    return steps.get(number).name(rank, number - firsts[rank]);
  }

  @SuppressWarnings("AnnotateFormatMethod") // All callers are here.
  private void finding(int number, String text, Object... values) {
    mistaken.set(number);
    findings.add(new Finding(rankOf[number], name(number) + text.formatted(values)));
  }

  private void matchMarks() {
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      var seen = new HashMap<Integer, Integer>();
      for (int number = firsts[rank]; number < firsts[rank + 1]; number++) {
        switch (steps.get(number)) {
          case Mark mark -> {
            var other = seen.put(mark.number(), number);
            if (other != null) {
              finding(number, ": %s has the same number; use another", name(other));
            }
          }
          case After after -> {
            var mark = seen.get(after.mark());
            if (mark == null) {
              blocked.add(number);
            } else {
              releasedBy[number] = mark;
            }
          }
          default -> {}
        }
      }
    }
  }

  private void matchWords() {
    var words = new LinkedHashMap<Word, Users>();
    for (int number = 0; number < steps.size(); number++) {
      switch (steps.get(number)) {
        case Signal signal -> {
          checkFlag(number, signal.flag());
          var problem = problem(number, signal.flag(), signal.index(), signal.to());
          if (problem.isEmpty()) {
            users(words, signal.to(), signal.flag(), signal.index()).signals().add(number);
          } else {
            idle.put(number, new Idle(problem, "", ""));
          }
        }
        case Wait wait -> {
          checkFlag(number, wait.flag());
          var problem = problem(number, wait.flag(), wait.index(), wait.from());
          if (!problem.isEmpty()) {
            finding(number, "%s", problem);
          }
          users(words, rankOf[number], wait.flag(), wait.index()).waits().add(number);
        }
        default -> {}
      }
    }
    words.values().forEach(this::match);
  }

  private static Users users(Map<Word, Users> words, int rank, Flag flag, int index) {
    return words.computeIfAbsent(
        new Word(rank, flag.name(), index), _ -> new Users(new ArrayList<>(), new ArrayList<>()));
  }

  private void checkFlag(int number, Flag flag) {
    if (!schedule.flags().contains(flag)) {
      boolean named = schedule.flags().stream().anyMatch(each -> each.name().equals(flag.name()));
      finding(
          number,
          named
              ? ": the schedule has another flag of this name; use the one of the builder"
              : ": the schedule has no such flag; add it to the builder");
    }
  }

  /// Returns why a signal and a wait cannot meet at a word; empty if they can.
  private String problem(int number, Flag flag, int index, int other) {
    if (index < 0 || index >= flag.words()) {
      return ": flag %s has words 0..%d but the index is %d"
          .formatted(flag, flag.words() - 1, index);
    }
    if (other < 0 || other >= schedule.ranks()) {
      return ": ranks are 0..%d; name one of them".formatted(schedule.ranks() - 1);
    }
    return other == rankOf[number]
        ? ": a rank does not signal itself; use a mark between its lanes"
        : "";
  }

  private void match(Users users) {
    if (users.signals().isEmpty()) {
      unraised.add(users.waits());
      return;
    }
    int signal = raising(users);
    for (int other : users.signals()) {
      if (other != signal) {
        var raises =
            rankOf[other] == rankOf[signal]
                ? "the rank has raised before"
                : name(signal) + " raises too";
        idle.put(
            other,
            new Idle(
                " raises a word that %s; one signal raises it in an iteration".formatted(raises),
                ": raise another, and let rank %d wait for it",
                ""));
      }
    }
    if (users.waits().isEmpty()) {
      idle.put(
          signal,
          new Idle(
              " is not waited for",
              "; let rank %d wait for it",
              "; no step needs the order, so remove it"));
    }
    for (int wait : users.waits()) {
      releasedBy[wait] = signal;
      // The advice on a mistaken wait is to wait for the rank that raises the word.
      if (((Wait) steps.get(wait)).from() != rankOf[signal] && !mistaken.get(wait)) {
        finding(
            wait, " is raised by another rank: %s; wait for rank %d", name(signal), rankOf[signal]);
      }
    }
  }

  /// Returns the signal that fits a wait best.
  private int raising(Users users) {
    return Collections.max(
        users.signals(),
        Comparator.comparingInt(
            signal -> users.waits().stream().mapToInt(wait -> fit(signal, wait)).max().orElse(0)));
  }

  /// Returns how well a signal fits a wait: its rank counts more than its chunk.
  private int fit(int signal, int number) {
    var wait = (Wait) steps.get(number);
    return (wait.from() == rankOf[signal] ? 2 : 0)
        + (wait.chunk() == steps.get(signal).chunk() ? 1 : 0);
  }

  /// Matches library calls by their index among those of each rank.
  private void matchCalls() {
    var calls = new ArrayList<List<Integer>>();
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      calls.add(
          IntStream.range(firsts[rank], firsts[rank + 1])
              .filter(number -> steps.get(number) instanceof LibraryCall)
              .boxed()
              .toList());
    }
    int most = calls.stream().mapToInt(List::size).max().orElse(0);
    boolean met = true;
    while (met && meetings.size() < most) {
      met = meet(calls, most);
    }
    for (var own : calls) {
      blocked.addAll(own.subList(Math.min(meetings.size(), own.size()), own.size()));
    }
  }

  /// Matches one call of each rank; finds a mistake otherwise.
  private boolean meet(List<List<Integer>> calls, int most) {
    int place = meetings.size();
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      if (calls.get(rank).size() <= place) {
        findings.add(
            new Finding(
                rank,
                ("rank %d makes %d library calls but others make %d, so these never end; let all"
                        + " ranks make the same")
                    .formatted(rank, calls.get(rank).size(), most)));
        return false;
      }
    }
    var meeting = calls.stream().mapToInt(of -> of.get(place)).toArray();
    for (int number : meeting) {
      var call = (LibraryCall) steps.get(number);
      var other = (LibraryCall) steps.get(meeting[0]);
      if (call.collective() != other.collective() || call.root() != other.root()) {
        findings.add(
            new Finding(
                rankOf[number],
                "deadlock: %s meets %s; let all ranks make the same calls in one order"
                    .formatted(name(meeting[0]), name(number))));
        return false;
      }
    }
    for (int number : meeting) {
      meetingOf[number] = place;
    }
    meetings.add(meeting);
    return true;
  }
}
