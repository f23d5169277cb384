package braid.selftest;

import braid.Capabilities;
import braid.ProcessGroup;
import braid.Tensor;
import braid.internal.context.RankContext;
import braid.internal.report.progress.Progress;
import braid.internal.selftest.Case;
import braid.internal.selftest.CaseFailed;
import braid.internal.selftest.CaseGroup;
import braid.internal.selftest.Program;
import braid.internal.selftest.Programs;
import braid.model.BraidException;
import braid.model.Library;
import braid.model.MemoryKind;
import braid.model.SelfCheck;
import braid.selftest.SelfTest.Outcome;
import braid.selftest.SelfTest.Row;
import braid.selftest.SelfTest.Way;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;

/// A self-test on its way.
final class SelfTestRun {
  /// @param text how to run it again
  private record Step(Consumer<ProcessGroup> body, String text) {}

  private final ProcessGroup group;
  private final RankContext context = RankContext.current();
  private final SelfTestPlan plan;
  private final Consumer<Tensor> handled;
  private final Consumer<Row> heard;
  private final String backend;
  private final List<Row> rows = new ArrayList<>();
  private final Map<Library, String> missing = new EnumMap<>(Library.class);

  /// Rows of every kind of memory that is available, from which random programs are drawn.
  private final List<Capabilities.Row> pipelines = new ArrayList<>();

  private final List<Capabilities.CollectiveRow> collectives = new ArrayList<>();

  /// Why the rest is not run; empty as long as it is.
  private String stopped = "";

  SelfTestRun(
      ProcessGroup group, SelfTestPlan plan, Consumer<Tensor> handled, Consumer<Row> heard) {
    this.group = group;
    this.plan = plan;
    this.handled = handled;
    this.heard = heard;
    this.backend = context.backend().name();
  }

  SelfTest.Report report() {
    try (var agreement = SelfTestAgreement.on(group)) {
      plan.checks().forEach(check -> run(check, agreement));
      plan.kinds().forEach(kind -> run(kind, agreement));
      if (plan.random().programs() > 0 && !pipelines.isEmpty()) {
        runPrograms(agreement);
      }
    }
    return new SelfTest.Report(
        "%s, %d %s".formatted(backend, group.size(), group.size() == 1 ? "rank" : "ranks"), rows);
  }

  private void run(SelfCheck check, SelfTestAgreement agreement) {
    add(
        new Way("check: " + check.name(), Way.ANY, Way.ANY, Way.ANY, Way.ANY),
        List.of(
            new Step(
                _ -> {
                  var wrong = check.run();
                  if (!wrong.isEmpty()) {
                    throw new CaseFailed(wrong);
                  }
                },
                "")),
        agreement);
  }

  private void run(MemoryKind kind, SelfTestAgreement agreement) {
    var unavailable = unavailable(kind);
    if (unavailable.isPresent()) {
      found(
          new Row(
              new Way(Way.ANY, Way.ANY, Way.ANY, kind.toString(), Way.ANY),
              Outcome.NOT_AVAILABLE,
              0,
              unavailable.get()));
      return;
    }
    var missing = missing();
    var overlaps = Capabilities.of(backend).stream().filter(row -> row.kind() == kind).toList();
    var collectives =
        Capabilities.collectivesOf(backend).stream()
            .filter(row -> row.kind() == kind)
            .map(row -> withoutMissing(row, missing))
            .toList();
    pipelines.addAll(overlaps);
    this.collectives.addAll(collectives);
    plan.holes(overlaps, collectives).forEach(this::found);
    var all = plan.cases(kind, overlaps, collectives, group.size());
    int count = all.values().stream().mapToInt(List::size).sum();
    var task = new Progress.Task("testing " + kind, "tested " + kind + ":", "cases");
    boolean speaks = group.rank() == 0;
    try (var progress = Progress.of(task, count, context.outbox(), speaks)) {
      int before = 0;
      for (var way : all.entrySet()) {
        add(
            way.getKey(),
            way.getValue().stream().map(each -> step(each, kind)).toList(),
            agreement);
        before += way.getValue().size();
        progress.done(before);
      }
    }
  }

  /// Runs all programs, also after one that was wrong.
  private void runPrograms(SelfTestAgreement agreement) {
    var programs = new Programs(group.size(), pipelines, collectives, plan.dtypes());
    var way = new Way(SelfTest.RANDOM_PROGRAMS, Way.ANY, Way.ANY, programs.kindNames(), Way.ANY);
    int count = plan.random().programs();
    var task = new Progress.Task("running random programs", "ran random programs:", "programs");
    var drawn = new ArrayList<Program>();
    int right = 0;
    try (var progress = Progress.of(task, count, context.outbox(), group.rank() == 0)) {
      for (int i = 0; i < count && stopped.isEmpty(); i++) {
        long seed = plan.random().seed() + i;
        var program = programs.draw(seed);
        drawn.add(program);
        var verdict =
            agreement.run(on -> program.check(new CaseGroup(on, MemoryKind.AUTO, handled)));
        stopped = verdict.stopped();
        if (verdict.wrong().isEmpty()) {
          right++;
        } else {
          found(new Row(way, Outcome.WRONG, 1, wrongProgram(verdict.wrong(), seed, program)));
        }
        progress.done(i + 1);
      }
    }
    if (right > 0) {
      var said = "seed %d: %s".formatted(plan.random().seed(), Program.counts(drawn));
      found(new Row(way, Outcome.OK, right, said));
    }
    if (drawn.size() < count) {
      found(new Row(way, Outcome.NOT_RUN, 0, stopped));
    }
  }

  private static String wrongProgram(String wrong, long seed, Program program) {
    return "%s (program of seed %d, again by --random 1 --seed %d: %s)"
        .formatted(wrong, seed, seed, program.text());
  }

  private void found(Row row) {
    rows.add(row);
    heard.accept(row);
  }

  /// Where one rank cannot have it no rank can use it.
  private Optional<String> unavailable(MemoryKind kind) {
    if (!stopped.isEmpty()) {
      return Optional.empty();
    }
    var why = "";
    try {
      var _ = context.backend().resolve(kind);
    } catch (BraidException e) {
      why = String.valueOf(e.getMessage());
    }
    return firstOf(group.gather(why));
  }

  private static Optional<String> firstOf(List<String> reasons) {
    return reasons.stream().filter(each -> !each.isEmpty()).findFirst();
  }

  /// Why each library cannot be had by this group; empty where it can.
  private Map<Library, String> missing() {
    if (missing.isEmpty() && stopped.isEmpty()) {
      for (var library : Library.values()) {
        var why = context.backend().missing(library).orElse("");
        missing.put(library, firstOf(group.gather(why)).orElse(""));
      }
    }
    return missing;
  }

  private static Capabilities.CollectiveRow withoutMissing(
      Capabilities.CollectiveRow row, Map<Library, String> missing) {
    var why = row.way().library().map(library -> missing.getOrDefault(library, "")).orElse("");
    return why.isEmpty() || !row.supported()
        ? row
        : new Capabilities.CollectiveRow(row.collective(), row.way(), row.kind(), false, "", why);
  }

  private Step step(Case of, MemoryKind kind) {
    return new Step(
        on -> of.check(new CaseGroup(on, kind, handled)), " (case %s)".formatted(of.text()));
  }

  /// Runs the cases of a way up to the first that is wrong.
  private void add(Way way, List<Step> cases, SelfTestAgreement agreement) {
    int run = 0;
    for (var each : cases) {
      if (!stopped.isEmpty()) {
        found(new Row(way, Outcome.NOT_RUN, run, stopped));
        return;
      }
      run++;
      var verdict = agreement.run(each.body());
      stopped = verdict.stopped();
      if (!verdict.wrong().isEmpty()) {
        int left = cases.size() - run;
        found(
            new Row(
                way,
                Outcome.WRONG,
                run,
                verdict.wrong()
                    + each.text()
                    + (left == 0 ? "" : "; %d more cases of this way not run".formatted(left))));
        return;
      }
    }
    found(new Row(way, Outcome.OK, run, ""));
  }
}
