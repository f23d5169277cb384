package braid.selftest;

import braid.Capabilities;
import braid.ProcessGroup;
import braid.TensorView;
import braid.internal.context.RankContext;
import braid.internal.report.progress.Progress;
import braid.internal.selftest.Case;
import braid.internal.selftest.CaseContext;
import braid.internal.selftest.CaseFailed;
import braid.internal.selftest.CommunicationCase;
import braid.internal.selftest.ComparedForms;
import braid.internal.selftest.Program;
import braid.internal.selftest.Programs;
import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.Collective;
import braid.model.MemoryKind;
import braid.model.SelfCheck;
import braid.model.Transport;
import braid.selftest.SelfTest.Configuration;
import braid.selftest.SelfTest.Outcome;
import braid.selftest.SelfTest.Row;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// A self-test in progress.
final class SelfTestRun {
  private static final String OUT_OF_REACH =
      "GPUs of several hosts exchange messages: no other access of their memory, and no replay";

  /// One case to run.
  ///
  /// @param text description by which to run it again
  private record Step(Consumer<ProcessGroup> body, String text) {}

  private static final String CHECK = "check: ";

  private final ProcessGroup group;
  private final RankContext context = RankContext.current();
  private final SelfTestPlan plan;
  private final Consumer<TensorView> alteration;
  private final Consumer<Row> listener;
  private final Consumer<String> beginning;
  private final BackendKind backend;
  private final List<Row> rows = new ArrayList<>();
  private final Map<Transport, String> missing = new EnumMap<>(Transport.class);

  /// Rows of every available kind of memory, from which random programs are drawn.
  private final List<Capabilities.Row> pipelines = new ArrayList<>();

  private final List<Capabilities.CollectiveRow> collectives = new ArrayList<>();

  /// Reason why the rest is not run; empty while cases run.
  private String stopped = "";

  SelfTestRun(
      ProcessGroup group,
      SelfTestPlan plan,
      Consumer<TensorView> alteration,
      Consumer<Row> listener,
      Consumer<String> beginning) {
    this.group = group;
    this.plan = plan;
    this.alteration = alteration;
    this.listener = listener;
    this.beginning = beginning;
    this.backend = context.backend().kind();
  }

  SelfTest.Report report() {
    try (var agreement = SelfTestAgreement.on(group)) {
      plan.checks().stream()
          .filter(check -> plan.tests(CHECK + check.name()))
          .forEach(check -> run(check, agreement));
      plan.kinds().forEach(kind -> run(kind, agreement));
      if (plan.tests(ComparedForms.WHAT)) {
        compareForms(agreement);
      }
      if (plan.random().programs() > 0 && !pipelines.isEmpty()) {
        runPrograms(agreement);
      }
    }
    return new SelfTest.Report(
        "%s, %d %s".formatted(backend, group.size(), group.size() == 1 ? "rank" : "ranks"), rows);
  }

  private void run(SelfCheck check, SelfTestAgreement agreement) {
    var way = new Configuration(CHECK + check.name(), "", "", "", "");
    if (isMissing(way, check::missing)) {
      return;
    }
    add(
        way,
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

  /// Returns whether a rank lacks what a configuration needs, and then adds its row.
  private boolean isMissing(Configuration way, Supplier<Optional<String>> reason) {
    var missing =
        stopped.isEmpty()
            ? firstOf(group.gather(reason.get().orElse("")))
            : Optional.<String>empty();
    missing.ifPresent(each -> found(Row.notAvailable(way, each)));
    return missing.isPresent();
  }

  private void run(MemoryKind kind, SelfTestAgreement agreement) {
    if (isMissing(new Configuration("", "", "", kind.toString(), ""), () -> unavailable(kind))) {
      return;
    }
    var missing = missing();
    var overlaps =
        Capabilities.of(backend).stream()
            .filter(row -> row.kind() == kind)
            .map(row -> withoutMissing(row, missing))
            .toList();
    var collectives =
        Capabilities.collectivesOf(backend).stream()
            .filter(row -> row.kind() == kind)
            .map(row -> withoutMissing(row, missing))
            .map(this::withinReach)
            .toList();
    pipelines.addAll(overlaps);
    this.collectives.addAll(collectives);
    Stream.concat(
            plan.unsupported(overlaps, collectives).stream(),
            plan.needMoreRanks(kind, group.size()).stream())
        .filter(row -> plan.tests(row.configuration().subject()))
        .forEach(this::found);
    var all = plan.cases(kind, overlaps, collectives, group.size());
    int count = all.values().stream().mapToInt(List::size).sum();
    var task = new Progress.Task("testing " + kind, "tested " + kind + ":", "cases");
    boolean reports = group.rank() == 0;
    try (var progress = Progress.of(task, count, context.outbox(), reports)) {
      int before = 0;
      for (var way : all.entrySet()) {
        var cases = new ArrayList<>(way.getValue());
        if (isApart()) {
          cases.removeIf(each -> each.readsOthers() || each.isReplayed());
        }
        if (cases.isEmpty()) {
          found(Row.notAvailable(way.getKey(), OUT_OF_REACH));
        } else {
          add(way.getKey(), cases.stream().map(each -> step(each, kind)).toList(), agreement);
        }
        before += way.getValue().size();
        progress.done(before);
      }
    }
    if (plan.tests(CommunicationCase.WHAT)) {
      runCommunication(kind, overlaps, collectives, agreement);
    }
  }

  /// Records which units of the GPUs communicate.
  private void runCommunication(
      MemoryKind kind,
      List<Capabilities.Row> overlaps,
      List<Capabilities.CollectiveRow> collectives,
      SelfTestAgreement agreement) {
    var subject = CommunicationCase.WHAT + "-communication";
    var all = new Configuration(subject, "", "", kind.toString(), "");
    if (isMissing(all, () -> CommunicationCase.missing(backend, group.size()))) {
      return;
    }
    for (var each : CommunicationCase.of(overlaps, collectives, group.size())) {
      var way = SelfTestPlan.configuration(each, kind);
      var units = new AtomicReference<>("");
      var step =
          new Step(subset -> units.set(each.check(new CaseContext(subset, kind, alteration))), "");
      add(way, List.of(step), agreement, units::get);
    }
  }

  private void compareForms(SelfTestAgreement agreement) {
    for (var each : ComparedForms.values()) {
      var way = SelfTestPlan.configuration(each);
      if (plan.tests(each.subject())
          && plan.dtypes().contains(ComparedForms.DTYPE)
          && !isMissing(way, () -> ComparedForms.missing(group.size()))) {
        var times = new AtomicReference<>("");
        var step =
            new Step(
                subset ->
                    times.set(each.check(new CaseContext(subset, MemoryKind.AUTO, alteration))),
                "");
        add(way, List.of(step), agreement, times::get);
      }
    }
  }

  /// Runs all programs, also after a wrong one.
  private void runPrograms(SelfTestAgreement agreement) {
    var programs = new Programs(group.size(), pipelines, collectives, plan.dtypes());
    var way = new Configuration(SelfTest.RANDOM_PROGRAMS, "", "", programs.kindNames(), "");
    int count = plan.random().programs();
    var task = new Progress.Task("running random programs", "ran random programs:", "programs");
    var drawn = new ArrayList<Program>();
    int right = 0;
    try (var progress = Progress.of(task, count, context.outbox(), group.rank() == 0)) {
      for (int i = 0; i < count && stopped.isEmpty(); i++) {
        long seed = plan.random().seed() + i;
        var program = programs.draw(seed);
        drawn.add(program);
        beginning.accept("%s, seed %d".formatted(SelfTest.RANDOM_PROGRAMS, seed));
        var verdict =
            agreement.run(
                subset -> program.check(new CaseContext(subset, MemoryKind.AUTO, alteration)));
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
      var summary = "seed %d: %s".formatted(plan.random().seed(), Program.counts(drawn));
      found(new Row(way, Outcome.OK, right, summary));
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
    listener.accept(row);
  }

  /// Returns why this rank cannot use the kind of memory.
  private Optional<String> unavailable(MemoryKind kind) {
    try {
      var _ = context.backend().resolve(kind);
      return Optional.empty();
    } catch (BraidException e) {
      return Optional.of(String.valueOf(e.getMessage()));
    }
  }

  private static Optional<String> firstOf(List<String> reasons) {
    return reasons.stream().filter(each -> !each.isEmpty()).findFirst();
  }

  /// Returns why each library is missing for this group; empty if it is available.
  private Map<Transport, String> missing() {
    if (missing.isEmpty() && stopped.isEmpty()) {
      for (var transport : Transport.values()) {
        var reason = context.backend().missing(transport).orElse("");
        missing.put(transport, firstOf(group.gather(reason)).orElse(""));
      }
    }
    return missing;
  }

  private static Capabilities.Row withoutMissing(
      Capabilities.Row row, Map<Transport, String> missing) {
    var reason = missing.getOrDefault(row.transport(), "");
    return reason.isEmpty() || !row.supported()
        ? row
        : new Capabilities.Row(
            row.pattern(), row.method(), row.transport(), row.kind(), false, "", reason);
  }

  private static Capabilities.CollectiveRow withoutMissing(
      Capabilities.CollectiveRow row, Map<Transport, String> missing) {
    var reason = missing.getOrDefault(row.way().transport(), "");
    return reason.isEmpty() || !row.supported()
        ? row
        : new Capabilities.CollectiveRow(
            row.collective(), row.way(), row.kind(), false, "", reason);
  }

  /// Returns whether ranks have no address of memory of others.
  private boolean isApart() {
    return context
        .backend()
        .separateHosts(IntStream.range(0, group.size()).boxed().toList())
        .isPresent();
  }

  /// Returns a row as not supported if its test reads memory of GPUs of other hosts.
  private Capabilities.CollectiveRow withinReach(Capabilities.CollectiveRow row) {
    boolean reads = row.collective().isMessage() || row.collective() == Collective.BARRIER;
    return row.supported() && reads && isApart()
        ? new Capabilities.CollectiveRow(
            row.collective(), row.way(), row.kind(), false, "", OUT_OF_REACH)
        : row;
  }

  private Step step(Case tested, MemoryKind kind) {
    return new Step(
        subset -> tested.check(new CaseContext(subset, kind, alteration)),
        " (case %s)".formatted(tested.text()));
  }

  private void add(Configuration way, List<Step> cases, SelfTestAgreement agreement) {
    add(way, cases, agreement, () -> "");
  }

  /// Runs the cases of a configuration up to the first wrong one.
  ///
  /// @param said text of a success
  private void add(
      Configuration way, List<Step> cases, SelfTestAgreement agreement, Supplier<String> said) {
    int run = 0;
    for (var each : cases) {
      if (!stopped.isEmpty()) {
        found(new Row(way, Outcome.NOT_RUN, run, stopped));
        return;
      }
      run++;
      beginning.accept(way.words() + each.text());
      var verdict = agreement.run(each.body());
      stopped = verdict.stopped();
      if (!verdict.wrong().isEmpty()) {
        int remaining = cases.size() - run;
        found(
            new Row(
                way,
                Outcome.WRONG,
                run,
                verdict.wrong()
                    + each.text()
                    + (remaining == 0
                        ? ""
                        : "; %d more cases of this way not run".formatted(remaining))));
        return;
      }
    }
    found(new Row(way, Outcome.OK, run, said.get()));
  }
}
