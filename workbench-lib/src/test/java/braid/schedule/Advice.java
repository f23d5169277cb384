package braid.schedule;

import braid.schedule.Step.After;
import braid.schedule.Step.Mark;
import braid.schedule.Step.Signal;
import braid.schedule.Step.Wait;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Follows the advice of a finding about the order of steps, word for word: at the place that it
/// names, of several places at the first.
final class Advice {
  private static final String STEP = "rank (\\d+), lane (\\S+), step (\\d+) \\(([^()]+)\\)";
  private static final String UNIT = STEP + " in iteration (\\d)";
  private static final String CALLER = "the caller's use of `.*` on rank (\\d+) .*";
  private static final String FLAG = "advice";

  private final Schedule schedule;
  private final List<List<Step>> steps = new ArrayList<>();
  private final Flag flag;
  private final int word;

  /// A step that a finding names.
  private record Place(int rank, int at, Step step) {}

  private Advice(Schedule schedule) {
    var flags = schedule.flags();
    this.word = (int) flags.stream().filter(each -> each.name().startsWith(FLAG)).count();
    this.flag = new Flag(FLAG + word, 1);
    this.schedule = schedule;
    for (int rank = 0; rank < schedule.ranks(); rank++) {
      steps.add(new ArrayList<>(schedule.steps(rank)));
    }
  }

  /// Returns the schedule after following the advice of a line.
  static Schedule follow(Schedule schedule, String line) {
    var advice = new Advice(schedule);
    advice.apply(
        line.replaceFirst(
            ", and (on|at) \\d+ more (rank|place)s?( of (the rank|\\d+ ranks))?$", ""));
    return advice.changed();
  }

  private Schedule changed() {
    var builder = schedule.withoutPorts();
    if (steps.stream().flatMap(List::stream).anyMatch(this::usesFlag)) {
      builder.flag(flag.name(), flag.words());
    }
    for (var port : schedule.ports()) {
      if (port.given()) {
        builder.given(port.name(), port::on);
      } else {
        builder.made(port.name(), port::on);
      }
    }
    return builder.stepsByRank(rank -> List.copyOf(steps.get(rank)));
  }

  private boolean usesFlag(Step step) {
    return (step instanceof Signal signal && signal.flag().equals(flag))
        || (step instanceof Wait wait && wait.flag().equals(flag));
  }

  private void apply(String line) {
    if (line.endsWith("so remove it")) {
      var place = place(matched(STEP + " (is not waited for|never ends).*", line), 1);
      steps.get(place.rank()).remove(place.at());
      return;
    }
    var removed = matcher(STEP + " is not waited for; let rank (\\d+) wait for it (.*)", line);
    if (removed.matches()) {
      var signal = (Signal) place(removed, 1).step();
      await(signal.flag(), signal.index(), number(removed, 1), signal.to(), removed.group(6));
      return;
    }
    removed =
        matcher(
            STEP + " raises a word .*: raise another, and let rank \\d+ wait for it (.*)", line);
    if (removed.matches()) {
      var place = place(removed, 1);
      var signal = (Signal) place.step();
      steps
          .get(place.rank())
          .set(place.at(), new Signal(signal.lane(), signal.chunk(), flag, 0, signal.to()));
      await(flag, 0, place.rank(), signal.to(), removed.group(5));
      return;
    }
    if (line.contains(" raises a word that ")) {
      var place = place(matched(STEP + " raises a word .*", line), 1);
      steps.get(place.rank()).remove(place.at());
      return;
    }
    removed =
        matcher(STEP + " never ends: no step raises it; let rank (\\d+) signal it ?(.*)", line);
    if (removed.matches()) {
      var wait = (Wait) place(removed, 1).step();
      signal(wait.flag(), wait.index(), number(removed, 1), wait.from(), removed.group(6));
      return;
    }
    removed =
        matcher(
            STEP
                + " raises the wrong word, since .*; raise (\\S+)\\[(\\d+)\\] of rank (\\d+) instead",
            line);
    if (removed.matches()) {
      var place = place(removed, 1);
      var signal = (Signal) place.step();
      steps
          .get(place.rank())
          .set(
              place.at(),
              new Signal(
                  signal.lane(),
                  signal.chunk(),
                  signal.flag(),
                  number(removed, 6),
                  number(removed, 7)));
      return;
    }
    applyToRace(line);
  }

  private void applyToRace(String line) {
    var race =
        matched(
            "race on .*?: ("
                + UNIT
                + "|"
                + CALLER
                + ") and ("
                + UNIT
                + "|"
                + CALLER
                + ") have no order; (.*)",
            line);
    var remedy = race.group(race.groupCount());
    int firstStep = 2;
    int secondStep = 9;
    boolean reversed = remedy.contains("the second step");
    int before = reversed ? secondStep : firstStep;
    int after = reversed ? firstStep : secondStep;
    if (remedy.contains("for a mark of lane")) {
      var one = place(race, before);
      var other = place(race, after);
      int mark = steps.get(one.rank()).size();
      var all = steps.get(one.rank());
      if (one.at() > other.at()) {
        throw new AssertionError("the mark comes too late: " + line);
      }
      all.add(other.at(), new After(other.step().lane(), Step.NO_CHUNK, mark));
      all.add(one.at() + 1, new Mark(one.step().lane(), Step.NO_CHUNK, mark));
      steps.set(one.rank(), new ArrayList<>(Program.numbered(all)));
      return;
    }
    var ends =
        matcher(
            "let rank (\\d+) end its iteration after a signal that rank (\\d+) raises after its step",
            remedy);
    var begins =
        matcher(
            "let rank (\\d+) wait for a signal that rank (\\d+) raises in the iteration", remedy);
    if (ends.matches()) {
      int to = Integer.parseInt(ends.group(1));
      int from = Integer.parseInt(ends.group(2));
      await(flag, 0, from, to, "at the end of its iteration");
      var one = place(race, firstStep);
      steps.get(from).add(one.at() + 1, new Signal(one.step().lane(), Step.NO_CHUNK, flag, 0, to));
    } else if (begins.matches()) {
      int from = Integer.parseInt(begins.group(2));
      var other = place(race, secondStep);
      steps
          .get(other.rank())
          .add(other.at(), new Wait(other.step().lane(), Step.NO_CHUNK, flag, 0, from));
      signal(flag, 0, other.rank(), from, "when its iteration begins");
    } else {
      matched(
          "let rank \\d+ wait for a signal that rank \\d+ raises after the (first|second) step",
          remedy);
      var one = place(race, before);
      var other = place(race, after);
      steps
          .get(other.rank())
          .add(other.at(), new Wait(other.step().lane(), Step.NO_CHUNK, flag, 0, one.rank()));
      steps
          .get(one.rank())
          .add(one.at() + 1, new Signal(one.step().lane(), Step.NO_CHUNK, flag, 0, other.rank()));
    }
  }

  private void await(Flag of, int index, int from, int to, String where) {
    var all = steps.get(to);
    if (where.equals("at the end of its iteration")) {
      all.add(new Wait(all.getLast().lane(), Step.NO_CHUNK, of, index, from));
    } else {
      var next = place(matched("before " + STEP, where), 1);
      all.add(next.at(), new Wait(next.step().lane(), next.step().chunk(), of, index, from));
    }
  }

  private void signal(Flag of, int index, int to, int from, String where) {
    var all = steps.get(from);
    if (where.equals("when its iteration begins")) {
      all.addFirst(new Signal(all.getFirst().lane(), Step.NO_CHUNK, of, index, to));
    } else {
      var last = place(matched("after " + STEP, where), 1);
      all.add(last.at() + 1, new Signal(last.step().lane(), last.step().chunk(), of, index, to));
    }
  }

  private static int number(Matcher matcher, int group) {
    return Integer.parseInt(matcher.group(group));
  }

  private static Matcher matcher(String pattern, String line) {
    return Pattern.compile(pattern).matcher(line);
  }

  private static Matcher matched(String pattern, String line) {
    var matcher = matcher(pattern, line);
    if (!matcher.matches()) {
      throw new AssertionError("not understood: " + line);
    }
    return matcher;
  }

  /// Returns the step whose rank, lane, number and text are groups from `first` on.
  private Place place(Matcher of, int first) {
    int rank = number(of, first);
    int at = number(of, first + 2);
    var step = steps.get(rank).get(at);
    if (!step.lane().name().equals(of.group(first + 1))
        || !step.text().equals(of.group(first + 3))) {
      throw new AssertionError("%s is no step of %s".formatted(step.name(rank, at), of.group()));
    }
    return new Place(rank, at, step);
  }
}
