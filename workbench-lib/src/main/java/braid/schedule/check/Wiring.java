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
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// Numbers the steps of all ranks, and matches each wait with its signal, each after with its mark,
/// and the library calls of all ranks.
final class Wiring {
  static final int NONE = -1;

  private final Schedule schedule;
  private final List<Step> steps = new ArrayList<>();
  private final int[] firsts;
  private final Map<Lane, Integer> lanes = new HashMap<>();
  private final List<int[]> meetings = new ArrayList<>();
  private final List<String> findings = new ArrayList<>();
  private final int[] rankOf;
  private final int[] releasedBy;
  private final int[] meetingOf;

  /// A signal word of a rank.
  private record Word(int rank, String flag, int index) {}

  /// Steps that raise a word, and steps that wait for it.
  private record Users(List<Integer> signals, List<Integer> waits) {}

  Wiring(Schedule schedule) {
    this.schedule = schedule;
    this.firsts = new int[schedule.ranks() + 1];
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      steps.addAll(schedule.steps(rank));
      firsts[rank + 1] = steps.size();
    }
    schedule.lanes().forEach(lane -> lanes.put(lane, lanes.size()));
    rankOf = new int[steps.size()];
    releasedBy = new int[steps.size()];
    meetingOf = new int[steps.size()];
    Arrays.fill(releasedBy, NONE);
    Arrays.fill(meetingOf, NONE);
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      Arrays.fill(rankOf, firsts[rank], firsts[rank + 1], rank);
    }
  }

  /// Matches the steps, which must fit the declarations, and returns the mistakes.
  List<String> match() {
    matchMarks();
    matchWords();
    matchCalls();
    return findings;
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

  /// Names a step, such as `copy of input@1[0..3] to inbox@2[0..3] on lane comm of rank 1`.
  String name(int number) {
    return "%s on lane %s of rank %d"
        .formatted(steps.get(number).text(), steps.get(number).lane(), rankOf[number]);
  }

  @SuppressWarnings("AnnotateFormatMethod") // All callers are here.
  private void finding(String text, Object... values) {
    findings.add(text.formatted(values));
  }

  private void matchMarks() {
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      var seen = new HashMap<Integer, Integer>();
      for (int number = firsts[rank]; number < firsts[rank + 1]; number++) {
        switch (steps.get(number)) {
          case Mark mark -> {
            var other = seen.put(mark.number(), number);
            if (other != null) {
              finding("%s: %s has the same number; use another", name(number), name(other));
            }
          }
          case After after -> {
            var mark = seen.get(after.mark());
            if (mark == null) {
              finding(
                  "%s has no mark %d before it; set the mark earlier in the rank's steps",
                  name(number), after.mark());
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
      int rank = rankOf[number];
      switch (steps.get(number)) {
        case Signal signal -> {
          if (wordExists(number, signal.flag(), signal.index(), signal.to())) {
            users(words, signal.to(), signal.flag(), signal.index()).signals().add(number);
          }
        }
        case Wait wait -> {
          if (wordExists(number, wait.flag(), wait.index(), wait.from())) {
            users(words, rank, wait.flag(), wait.index()).waits().add(number);
          }
        }
        default -> {}
      }
    }
    words.forEach(this::match);
  }

  private static Users users(Map<Word, Users> words, int rank, Flag flag, int index) {
    return words.computeIfAbsent(
        new Word(rank, flag.name(), index), _ -> new Users(new ArrayList<>(), new ArrayList<>()));
  }

  private boolean wordExists(int number, Flag flag, int index, int other) {
    int before = findings.size();
    if (!schedule.flags().contains(flag)) {
      finding("%s: the schedule has no such flag; add it to the builder", name(number));
    } else if (index < 0 || index >= flag.words()) {
      finding(
          "%s: flag %s has words 0..%d but the index is %d",
          name(number), flag, flag.words() - 1, index);
    }
    if (other < 0 || other >= schedule.ranks()) {
      finding("%s: ranks are 0..%d; name one of them", name(number), schedule.ranks() - 1);
    } else if (other == rankOf[number]) {
      finding("%s: a rank does not signal itself; use a mark between its lanes", name(number));
    }
    return findings.size() == before;
  }

  private void match(Word word, Users users) {
    for (int extra :
        users.signals().subList(Math.min(1, users.signals().size()), users.signals().size())) {
      int first = users.signals().getFirst();
      finding(
          "%s raises a word that %s; one signal raises it in an iteration",
          name(extra),
          rankOf[extra] == rankOf[first]
              ? "the rank has raised before"
              : "%s raises too".formatted(name(first)));
    }
    if (users.signals().isEmpty()) {
      for (int wait : users.waits()) {
        finding(
            "%s never ends: no step raises it; let rank %d signal it",
            name(wait), ((Wait) steps.get(wait)).from());
      }
      return;
    }
    int signal = users.signals().getFirst();
    if (users.waits().isEmpty()) {
      finding(
          "%s is not waited for; let rank %d wait for it or remove it", name(signal), word.rank());
    }
    for (int wait : users.waits()) {
      if (((Wait) steps.get(wait)).from() == rankOf[signal]) {
        releasedBy[wait] = signal;
      } else {
        finding(
            "%s is raised by another rank: %s; wait for rank %d",
            name(wait), name(signal), rankOf[signal]);
      }
    }
  }

  /// Matches library calls by their index among those of each rank.
  private void matchCalls() {
    var calls = new ArrayList<List<Integer>>();
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      var libraryCalls = new ArrayList<Integer>();
      for (int number = firsts[rank]; number < firsts[rank + 1]; number++) {
        if (steps.get(number) instanceof LibraryCall) {
          libraryCalls.add(number);
        }
      }
      calls.add(libraryCalls);
    }
    int most = calls.stream().mapToInt(List::size).max().orElse(0);
    for (int place = 0; place < most; place++) {
      var meeting = new int[schedule.ranks()];
      for (int rank = 0; rank < schedule.ranks(); rank++) {
        if (calls.get(rank).size() <= place) {
          finding(
              "rank %d makes %d library calls but others make %d, so these never end; let all ranks"
                  + " make the same",
              rank, calls.get(rank).size(), most);
          return;
        }
        meeting[rank] = calls.get(rank).get(place);
        meetingOf[meeting[rank]] = place;
        var call = (LibraryCall) steps.get(meeting[rank]);
        var other = (LibraryCall) steps.get(meeting[0]);
        if (call.collective() != other.collective() || call.root() != other.root()) {
          finding(
              "deadlock: library call %d is %s, but %s; let all ranks make the same calls in one"
                  + " order",
              place, name(meeting[0]), name(meeting[rank]));
          return;
        }
      }
      meetings.add(meeting);
    }
  }
}
