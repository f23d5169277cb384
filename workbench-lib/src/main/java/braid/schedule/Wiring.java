package braid.schedule;

import braid.model.AttentionSpec;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.schedule.Step.After;
import braid.schedule.Step.Attend;
import braid.schedule.Step.AttendGradient;
import braid.schedule.Step.Copy;
import braid.schedule.Step.Gemm;
import braid.schedule.Step.LibraryCall;
import braid.schedule.Step.Mark;
import braid.schedule.Step.Merge;
import braid.schedule.Step.Partial;
import braid.schedule.Step.Prepare;
import braid.schedule.Step.Reduce;
import braid.schedule.Step.Signal;
import braid.schedule.Step.Wait;
import braid.schedule.Step.Zero;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/// Numbers the steps of all ranks, and matches each wait with its signal, each after with its mark,
/// and the library calls of all ranks. Also checks every step against the schedule's declarations.
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
    declared();
    if (findings.isEmpty()) {
      matchMarks();
      matchWords();
      matchCalls();
    }
  }

  Schedule schedule() {
    return schedule;
  }

  List<String> findings() {
    return findings;
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

  private void declared() {
    var buffers = schedule.buffers().stream().collect(Collectors.toMap(Buffer::name, b -> b));
    for (var port : schedule.ports()) {
      for (int rank = 0; rank < schedule.ranks(); rank++) {
        var region = port.on(rank);
        if (region.rank() != rank || !declares(buffers, region.buffer())) {
          finding(
              "port %s is %s on rank %d; give it a region of a declared buffer on that rank",
              port.name(), region, rank);
        } else if (!region.hasAllColumns()) {
          finding(
              "port %s is %s on rank %d; give it all %d columns",
              port.name(), region, rank, region.buffer().columns(rank));
        }
      }
    }
    for (int number = 0; number < steps.size(); number++) {
      var step = steps.get(number);
      if (!lanes.containsKey(step.lane())) {
        finding("%s: the schedule has no such lane; add it to the builder", name(number));
        continue;
      }
      if (!sizesFit(number)) {
        continue;
      }
      for (var region : regions(step)) {
        if (!declares(buffers, region.buffer())) {
          finding(
              "%s: the schedule declares no such buffer %s; add it to the builder",
              name(number), region.buffer());
        } else if (region.rank() != rankOf[number] && !region.buffer().symmetric()) {
          finding(
              "%s: %s is private to rank %d; make it symmetric or copy it on its own rank",
              name(number), region, region.rank());
        } else if (!region.hasAllColumns() && !(step instanceof Copy)) {
          finding(
              "%s: only copies take some of the columns but it takes %s of %d; copy them to a buffer of their own",
              name(number), region, region.buffer().columns(region.rank()));
        }
      }
    }
  }

  private static boolean declares(Map<String, Buffer> buffers, Buffer buffer) {
    var known = buffers.get(buffer.name());
    return buffer.equals(known);
  }

  private List<Region> regions(Step step) {
    return switch (step) {
      // Other accesses are to a form of the weight that the backend keeps.
      case Prepare prepare -> List.of(prepare.weight());
      case Gemm gemm -> {
        var own = Prepare.operand(gemm.weight()).buffer().name();
        yield gemm.accesses(NONE).stream()
            .map(Step.Access::region)
            .filter(region -> !region.buffer().name().equals(own))
            .toList();
      }
      default -> step.accesses(NONE).stream().map(Step.Access::region).toList();
    };
  }

  /// Returns whether the regions of a step match in rows, columns and type.
  private boolean sizesFit(int number) {
    int before = findings.size();
    switch (steps.get(number)) {
      case Copy copy ->
          copy.moves()
              .forEach(
                  move -> {
                    same(
                        number,
                        "rows",
                        move.from(),
                        move.from().rows(),
                        move.to(),
                        move.to().rows());
                    sameColumns(number, move.from(), move.to());
                    if (move.from().buffer().transposed() != move.to().buffer().transposed()) {
                      finding(
                          "%s: %s is stored by columns and %s is not; copy between buffers of one layout",
                          name(number),
                          move.from().buffer().transposed() ? move.from() : move.to(),
                          move.from().buffer().transposed() ? move.to() : move.from());
                    }
                    if (move.from().buffer().dtype() != move.to().buffer().dtype()) {
                      finding(
                          "%s: %s is %s but %s is %s; a copy converts nothing",
                          name(number),
                          move.from(),
                          move.from().buffer().dtype(),
                          move.to(),
                          move.to().buffer().dtype());
                    }
                  });
      case Gemm gemm ->
          gemm.tiles()
              .forEach(
                  tile -> {
                    var in = tile.input();
                    var out = tile.output();
                    same(number, "rows", in, in.rows(), out, out.rows());
                    same(number, "depth", in, in.columns(), gemm.weight(), gemm.weight().rows());
                    if (!multiply(in.buffer().dtype(), gemm.weight().buffer().dtype())) {
                      finding(
                          "%s: %s is %s but %s is %s; multiply numbers of one type",
                          name(number),
                          in,
                          in.buffer().dtype(),
                          gemm.weight(),
                          gemm.weight().buffer().dtype());
                    }
                    sameColumns(number, gemm.weight(), out);
                    finishFits(number, gemm.finish(), out);
                  });
      case Reduce reduce -> {
        for (var part : reduce.parts()) {
          same(number, "rows", part, part.rows(), reduce.output(), reduce.output().rows());
          sameColumns(number, part, reduce.output());
        }
        if (reduce.parts().isEmpty()) {
          finding("%s: a sum needs 1 or more parts but has none", name(number));
        }
        finishFits(number, reduce.finish(), reduce.output());
      }
      case Attend attend -> attentionFits(number, attend);
      case AttendGradient gradient -> gradientFits(number, gradient);
      case Merge merge -> {
        if (merge.parts().isEmpty()) {
          finding("%s: a merge needs 1 or more parts but has none", name(number));
        }
        for (var part : merge.parts()) {
          var result = merge.result();
          same(
              number,
              "rows",
              part.output(),
              part.output().rows(),
              result.output(),
              result.output().rows());
          sameColumns(number, part.output(), result.output());
          same(number, "rows", part.lse(), part.lse().rows(), result.lse(), result.lse().rows());
          sameColumns(number, part.lse(), result.lse());
          wide(number, part.output());
        }
        partialFits(number, merge.result());
      }
      case Zero _, Prepare _, LibraryCall _, Signal _, Wait _, Mark _, After _ -> {}
    }
    return findings.size() == before;
  }

  private void attentionFits(int number, Attend attend) {
    var spec = attend.spec();
    goal()
        .filter(
            goal ->
                spec.group() != goal.group()
                    || !spec.heads(goal.heads(), goal.kvHeads()).equals(goal))
        .ifPresent(
            goal -> finding("%s: it is of %s but the schedule is of %s", name(number), spec, goal));
    var output = attend.result().output();
    same(number, "rows", attend.query(), attend.query().rows(), output, output.rows());
    same(number, "rows", attend.key(), attend.key().rows(), attend.value(), attend.value().rows());
    columns(number, attend.query(), (long) spec.heads() * spec.headSize());
    columns(number, output, (long) spec.heads() * spec.headSize());
    columns(number, attend.key(), (long) spec.kvHeads() * spec.headSize());
    columns(number, attend.value(), (long) spec.kvHeads() * spec.headSize());
    columns(number, attend.result().lse(), spec.heads());
    for (var region : List.of(attend.query(), attend.key(), attend.value())) {
      if (region.buffer().dtype() != spec.dtype()) {
        finding(
            "%s: %s is %s but the attention's type is %s",
            name(number), region, region.buffer().dtype(), spec.dtype());
      }
    }
    positions(number, attend.query(), attend.queryPosition(), spec);
    positions(number, attend.key(), attend.keyPosition(), spec);
    partialFits(number, attend.result());
    if (attend.continued()) {
      wide(number, output);
    }
  }

  /// Returns the attention that the schedule computes or differentiates.
  private Optional<AttentionSpec> goal() {
    return switch (schedule.goal()) {
      case Goal.Attention attention -> Optional.of(attention.spec());
      case Goal.AttentionGradient gradient -> Optional.of(gradient.spec().of());
      case Goal.Gemm _, Goal.Collected _, Goal.Unstated _ -> Optional.empty();
    };
  }

  private void gradientFits(int number, AttendGradient gradient) {
    var block = gradient.block();
    attentionFits(number, block);
    sameShape(number, block.query(), block.result().output());
    sameShape(number, block.query(), gradient.outputGradient());
    sameType(number, block.query(), block.result().output());
    sameType(number, block.query(), gradient.outputGradient());
    sameShape(number, block.query(), gradient.result().query());
    sameShape(number, block.key(), gradient.result().key());
    sameShape(number, block.value(), gradient.result().value());
    wide(number, gradient.result().query());
    wide(number, gradient.result().key());
    wide(number, gradient.result().value());
  }

  private void sameShape(int number, Region one, Region other) {
    same(number, "rows", one, one.rows(), other, other.rows());
    sameColumns(number, one, other);
  }

  private void sameType(int number, Region one, Region other) {
    if (one.buffer().dtype() != other.buffer().dtype()) {
      finding(
          "%s: %s is %s but %s is %s; give both one type",
          name(number), one, one.buffer().dtype(), other, other.buffer().dtype());
    }
  }

  private void positions(int number, Region rows, long first, AttentionSpec spec) {
    if (first < 0 || first + rows.rows() > spec.sequence()) {
      finding(
          "%s: positions are 0..%d but %s has %d..%d",
          name(number), spec.sequence() - 1, rows, first, first + rows.rows() - 1);
    }
  }

  private void partialFits(int number, Partial partial) {
    same(
        number,
        "rows",
        partial.output(),
        partial.output().rows(),
        partial.lse(),
        partial.lse().rows());
    wide(number, partial.lse());
  }

  private void columns(int number, Region region, long wanted) {
    if (region.columns() != wanted) {
      finding(
          "%s: %s must have %d columns but has %d", name(number), region, wanted, region.columns());
    }
  }

  /// Partial results are merged in fp32.
  private void wide(int number, Region region) {
    if (region.buffer().dtype() != DType.FP32) {
      finding(
          "%s: %s must be %s, as partial results are, but is %s",
          name(number), region, DType.FP32, region.buffer().dtype());
    }
  }

  /// Returns whether numbers of two types can be multiplied: of one type, or as in the problem.
  private boolean multiply(DType input, DType weight) {
    return input == weight
        || (schedule.goal() instanceof Goal.Gemm(GemmSpec spec, var _)
            && input == spec.dtype()
            && weight == spec.weightDtype());
  }

  private void finishFits(int number, Finish finish, Region output) {
    int rank = output.rank();
    finish
        .bias()
        .ifPresent(
            bias -> {
              sameColumns(number, bias.on(rank), output);
              sumTypeFits(number, bias, output);
              if (bias.rows(rank) != 1) {
                finding("%s: a bias has 1 row but %s has %d", name(number), bias, bias.rows(rank));
              }
            });
    finish
        .preActivation()
        .ifPresent(
            kept -> {
              same(
                  number,
                  "rows",
                  kept.on(rank),
                  kept.rows(rank),
                  output.buffer().on(rank),
                  output.buffer().rows(rank));
              sameColumns(number, kept.on(rank), output);
              sumTypeFits(number, kept, output);
            });
  }

  private void sumTypeFits(int number, Buffer buffer, Region output) {
    var expected = output.buffer().dtype().sumType();
    if (buffer.dtype() != expected) {
      finding(
          "%s: for %s in %s, %s must be %s but is %s",
          name(number), output, output.buffer().dtype(), buffer, expected, buffer.dtype());
    }
  }

  private void sameColumns(int number, Region one, Region other) {
    same(number, "columns", one, one.columns(), other, other.columns());
  }

  private void same(int number, String what, Region one, long size, Region other, long otherSize) {
    if (size != otherSize) {
      finding(
          "%s: %s must be of one size but are %d of %s and %d of %s",
          name(number), what, size, one, otherSize, other);
    }
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
