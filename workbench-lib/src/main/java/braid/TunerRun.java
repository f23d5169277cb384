package braid;

import braid.Candidates.Work;
import braid.evidence.ChainStudy;
import braid.evidence.Crossovers;
import braid.evidence.Decision;
import braid.evidence.Decisions;
import braid.evidence.Study;
import braid.internal.report.progress.ProgressBar;
import braid.internal.report.statistics.RoundPlan;
import braid.internal.report.value.Caveats;
import braid.model.BraidException;
import braid.model.Configuration;
import braid.model.Configuration.LayoutTuning;
import braid.model.Configuration.OwnSchedule;
import braid.model.ContextParallel;
import braid.model.GemmSpec;
import braid.model.MemoryKind;
import braid.model.Overlap;
import braid.model.Problem;
import braid.model.Timing;
import braid.model.TokenLayout;
import braid.model.Tuning;
import braid.schedule.simulation.Machine;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.TreeMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// The run of a tuner by the options that were set: builds and verifies every configuration,
/// measures all of them, and makes their study.
final class TunerRun {
  /// A measurement that is repeated, to leave out the first.
  private static final long SHORT_NANOS = 1_000_000_000;

  final ProcessGroup group;
  final Grid grid;
  final TunedPipelines pipelines;
  @Nullable Problem problem;
  @Nullable String steps;
  @Nullable List<TokenLayout> layouts;
  @Nullable Integer repeats;
  @Nullable Duration budget;
  @Nullable Integer warmup;
  @Nullable Long seed;
  @Nullable Timing timing;
  @Nullable Machine machine;
  @Nullable Integer builds;

  /// Other stacks whose steps are measured.
  final List<Peers> peers = new ArrayList<>();

  /// True if a step is code.
  boolean hasCode;

  /// True if sizes vary, so that a tuning need not be possible for all of them.
  boolean sweeps;

  /// True to search among all tunings, instead of measuring each of a few.
  boolean searches;

  /// Decisions beside which a search keeps its samples.
  Decisions decisions = Decisions.kept();

  /// Samples of searches whose study has not ended.
  private final List<SearchSamples> searched = new ArrayList<>();

  /// Steps, or schedules of one's own.
  final SequencedMap<Configuration, Supplier<Work>> named = new LinkedHashMap<>();

  final SequencedMap<String, IntFunction<Supplier<Work>>> families = new LinkedHashMap<>();

  /// @param kind kind of symmetric memory; null for the default
  TunerRun(ProcessGroup group, @Nullable MemoryKind kind) {
    this.group = group;
    grid = new Grid(group, kind);
    pipelines = new TunedPipelines(group, kind);
  }

  /// Keeps the result of a problem's tunings as a decision.
  Decision decision() {
    if (problem == null || layouts != null || !named.isEmpty() || !families.isEmpty()) {
      throw new BraidException(
          "a decision is a tuning of a problem but the tuner has %s; call run(), or leave them out"
              .formatted(problem == null ? "steps" : layouts != null ? "layouts" : additions()));
    }
    if (group.size() == 1) {
      throw new BraidException(
          "a decision needs 2 or more ranks but group `%s` has 1: one rank has nothing to communicate; try -n 4"
              .formatted(group.name()));
    }
    if (group.context().backend().ranksPerDevice() != 1) {
      throw new BraidException(
          "a decision needs times that count but %s; decide with a GPU per rank, or with --backend host"
              .formatted(Caveats.SHARED));
    }
    return AutoTuning.of(group, problem, null).decision(study(Tuning.class));
  }

  private String additions() {
    return peers.isEmpty() ? "schedules of your own" : "peers";
  }

  <C extends Configuration> Study<C> study(Class<C> kind) {
    var given = problem;
    var notes = new ArrayList<String>();
    var work = new LinkedHashMap<Configuration, Supplier<Work>>();
    if (given == null) {
      requireSteps();
    } else if (layouts == null) {
      add(given, tuning -> tuning, work, notes);
    } else {
      var own = TunedPipelines.attention(given).orElseThrow().layout();
      var unfused = new LayoutTuning(own, ContextParallel.unfused());
      work.put(unfused, () -> pipelines.build(given, unfused.tuning()));
      for (var layout : layouts) {
        add(
            TunedPipelines.divided(given, layout),
            tuning -> new LayoutTuning(layout, (ContextParallel) tuning),
            work,
            notes);
      }
    }
    work.putAll(named);
    families.forEach(
        (name, family) ->
            grid.splitCounts()
                .forEach(splits -> work.put(new OwnSchedule(name, splits), family.apply(splits))));
    work.keySet().stream()
        .filter(each -> !kind.isInstance(each))
        .findFirst()
        .ifPresent(
            other -> {
              throw new BraidException(
                  "`%s` needs another kind of study; run the tuner that schedule, schedules or layouts returned"
                      .formatted(other));
            });
    var study = measured(work, Map.of(), notes).cast(kind);
    searched.forEach(SearchSamples::forget);
    searched.clear();
    return study;
  }

  private void requireSteps() {
    if (steps == null) {
      throw new BraidException(
          "a tuner needs a problem but has none; call gemm(spec), attention(spec) or steps(name) before run()");
    }
    grid.requireNone(steps);
    requireNoSearch("steps");
    if (builds != null) {
      throw new BraidException(
          "builds are of the pipelines of a problem but the tuner has steps, which you have built; leave it out, or call braid run --starts %d"
              .formatted(builds));
    }
    if (named.size() < 2) {
      throw new BraidException(
          "steps are compared with the first, so there must be 2 or more but were %d; add step(name, chain) or step(name, () -> ...)"
              .formatted(named.size()));
    }
    if (hasCode && timing == Timing.BACK_TO_BACK) {
      throw new BraidException(
          "timing must be latency if a step is code, which runs once at a time, but was %s; leave it out"
              .formatted(timing));
    }
  }

  /// Runs a study for each number of rows.
  Crossovers crossovers(List<Integer> rows) {
    var spec = swept();
    sweeps = true;
    var studies = new TreeMap<Integer, Study<Overlap>>();
    for (int count : rows) {
      problem = spec.rows(count);
      studies.put(count, study(Overlap.class));
    }
    problem = spec;
    return new Crossovers(studies);
  }

  /// Predicts the times of every tuning for each number of ranks, and measures the group's own.
  Crossovers crossoversOfRanks(List<Integer> counts) {
    var spec = swept();
    var predicted = predicted(spec, counts);
    var studies = new TreeMap<Integer, Study<Overlap>>();
    if (group.size() > 1 && counts.contains(group.size())) {
      studies.put(group.size(), study(Overlap.class));
    }
    return new Crossovers(Crossovers.RANKS, studies, Optional.of(predicted));
  }

  private GemmSpec swept() {
    if (problem instanceof GemmSpec spec && named.isEmpty() && families.isEmpty()) {
      return spec;
    }
    throw new BraidException(
        "a sweep is over the rows or ranks of a GEMM and its overlaps but the tuner has %s; begin with gemm(spec)"
            .formatted(
                problem instanceof GemmSpec
                    ? additions()
                    : problem == null ? "steps, or no problem" : problem));
  }

  /// Predicts times, on rank 0, which shares them: a line for each number of ranks.
  private Crossovers.Prediction predicted(GemmSpec spec, List<Integer> counts) {
    var tunings =
        Stream.concat(Stream.of(Overlap.unfused()), grid.all(spec).stream())
            .map(tuning -> tuning.require(Overlap.class, spec))
            .toList();
    var rows = new ArrayList<String>();
    if (group.rank() == 0) {
      try (var progress =
          new ProgressBar(
                  "predicting",
                  counts.size() * tunings.size(),
                  "describing the machine",
                  group.context().outbox())
              .ticking()) {
        var described = machine == null ? Search.thisMachine(group) : machine;
        rows.add(described.title());
        for (int ranks : counts) {
          var nanos = new ArrayList<String>();
          for (var tuning : tunings) {
            progress.step("%d ranks, %s".formatted(ranks, tuning));
            boolean possible =
                Feasibility.isPossible(spec, tuning, ranks, group.context().backend().kind());
            nanos.add(Double.toString(possible ? Search.nanos(spec, tuning, ranks, described) : 0));
          }
          rows.add(String.join(" ", nanos));
        }
        progress.finish("done");
      }
    }
    var shared = group.broadcast(String.join("\n", rows), 0).lines().toList();
    var predicted = new TreeMap<Integer, SequencedMap<Overlap, Double>>();
    for (int i = 0; i < counts.size(); i++) {
      var nanos = shared.get(i + 1).split(" ", -1);
      var possible = new LinkedHashMap<Overlap, Double>();
      for (int j = 0; j < nanos.length; j++) {
        double value = Double.parseDouble(nanos[j]);
        if (value > 0) {
          possible.put(tunings.get(j), value);
        }
      }
      predicted.put(counts.get(i), possible);
    }
    return new Crossovers.Prediction(shared.getFirst(), spec.toString(), predicted);
  }

  void requireNoSearch(String subject) {
    if (searches) {
      throw new BraidException(
          "search is for the tunings of a problem but the tuner has %s; leave it out"
              .formatted(subject));
    }
  }

  /// Adds the unfused reference of a problem and the tunings to try.
  private void add(
      Problem problem,
      Function<Tuning, Configuration> configuration,
      SequencedMap<Configuration, Supplier<Work>> work,
      List<String> notes) {
    var unfused = Tuning.unfused(problem);
    work.putIfAbsent(configuration.apply(unfused), () -> pipelines.build(problem, unfused));
    var possible = grid.possible(problem, !sweeps, notes);
    for (var tuning : searches ? finalists(problem, possible, notes) : possible) {
      work.put(configuration.apply(tuning), () -> pipelines.build(problem, tuning));
    }
    var verified = pipelines.verified(problem, unfused);
    if (!verified.equals(problem)) {
      notes.add("plain loops verify a part of the tokens: " + verified);
    }
  }

  private List<Tuning> finalists(Problem problem, List<Tuning> possible, List<String> notes) {
    if (possible.size() <= Search.MOST_FINALISTS) {
      return possible;
    }
    var unfused = Tuning.unfused(problem);
    var samples = samples(problem, possible);
    searched.add(samples);
    var predictions = Search.predictions(group, problem, possible, Optional.ofNullable(machine));
    return new Search(
            group, possible, predictions, orElse(budget, Tuner.DEFAULT_BUDGET), once(problem))
        .finalists(
            (tunings, rounds) -> {
              var work = new LinkedHashMap<Configuration, Supplier<Work>>();
              work.put(unfused, () -> pipelines.build(problem, unfused));
              tunings.forEach(tuning -> work.put(tuning, () -> pipelines.build(problem, tuning)));
              return candidates(tunings.size(), RoundPlan.exactly(rounds), Optional.empty(), 1)
                  .screen(work);
            },
            samples,
            notes);
  }

  /// Returns the time of one measurement of the reference on the slowest rank.
  private Duration once(Problem problem) {
    var reference = pipelines.build(problem, Tuning.unfused(problem));
    try {
      long shortest = Long.MAX_VALUE;
      // The first one also compiles, and a long one need not be repeated.
      for (int i = 0; i < 3 && (i == 0 || shortest < SHORT_NANOS); i++) {
        var nanos = reference.time(orElse(warmup, Tuner.DEFAULT_WARMUP) + 1, form());
        long slowest = Arrays.stream(group.gather(Arrays.stream(nanos).sum())).max().orElseThrow();
        shortest = Math.min(shortest, slowest);
      }
      return Duration.ofNanos(shortest);
    } finally {
      reference.close();
    }
  }

  /// Returns the samples of an earlier search of the same tunings, measured in the same way.
  private SearchSamples samples(Problem problem, List<Tuning> possible) {
    var automatic = AutoTuning.of(group, problem, pipelines.kind());
    var conditions = new LinkedHashMap<>(automatic.setting());
    conditions.putAll(automatic.versions());
    conditions.put("timing", form().toString());
    conditions.put("warmup", Integer.toString(orElse(warmup, Tuner.DEFAULT_WARMUP)));
    conditions.put(
        "tunings", possible.stream().map(Tuning::toString).collect(Collectors.joining("; ")));
    return new SearchSamples(group, decisions.samples(automatic.setting()), conditions);
  }

  ChainStudy tuned(Chain chain) {
    var best = new ArrayList<>(chain.pipelines().stream().map(Pipeline::tuning).toList());
    var tuned = new ArrayList<ChainStudy.Tuned>();
    for (int i = 0; i < best.size(); i++) {
      int index = i;
      var pipeline = chain.pipelines().get(index);
      var feasible = grid.all(pipeline.problem()).stream().filter(pipeline::isFeasible).toList();
      if (pipeline.group().size() == 1
          || feasible.isEmpty()
          || chain.reader(pipeline).isPresent()) {
        continue;
      }
      var work = new LinkedHashMap<Configuration, Supplier<Work>>();
      Stream.concat(Stream.of(Tuning.unfused(pipeline.problem())), feasible.stream())
          .forEach(
              tuning ->
                  work.put(
                      tuning,
                      () -> {
                        var tunings = new ArrayList<>(best);
                        tunings.set(index, tuning);
                        var changed = chain.with(tunings);
                        return new Work.OfChain(changed, changed::verify, changed::close);
                      }));
      var columns = Map.of("tuned", "pipeline %d".formatted(index + 1));
      var study = measured(work, columns, List.of()).cast(Tuning.class);
      tuned.add(new ChainStudy.Tuned(index + 1, pipeline.problem().toString(), study));
      if (study.timesCount()) {
        best.set(index, study.best());
      }
    }
    boolean alone = chain.pipelines().stream().allMatch(each -> each.group().size() == 1);
    if (alone && !best.isEmpty()) {
      return new ChainStudy(best, tuned, Caveats.oneRank(chain.configuration(), 1));
    }
    if (tuned.isEmpty()) {
      throw new BraidException(
          "%s has no pipeline that can have any of the tunings to try; give other overlaps"
              .formatted(chain));
    }
    return new ChainStudy(best, tuned);
  }

  /// Builds, verifies and measures the work of each configuration; the first is the reference.
  ///
  /// @param also additional columns of the problem
  /// @param notes lines to show beside the progress
  private Study<?> measured(
      SequencedMap<Configuration, Supplier<Work>> work,
      Map<String, String> also,
      List<String> notes) {
    group.agree(
        "the tuner's configurations",
        work.keySet().stream().map(String::valueOf).collect(Collectors.joining(", ")));
    int configurations = work.size() - 1;
    return candidates(configurations, plan(configurations), machine(), builds())
        .study(
            work,
            reference -> {
              var columns = problem(reference);
              columns.putAll(also);
              return columns;
            },
            notes);
  }

  private int builds() {
    return orElse(builds, searches ? Tuner.BUILDS_OF_SEARCH : 1);
  }

  private Candidates candidates(
      int configurations, RoundPlan rounds, Optional<Machine> predicted, int times) {
    return new Candidates(
        group,
        configurations,
        rounds,
        orElse(warmup, Tuner.DEFAULT_WARMUP),
        form(),
        orElse(seed, ThreadLocalRandom.current().nextLong()),
        predicted,
        times);
  }

  private Timing form() {
    return hasCode ? Timing.LATENCY : orElse(timing, group.context().backend().timing());
  }

  private SequencedMap<String, String> problem(Work reference) {
    var columns = new LinkedHashMap<String, String>();
    if (steps != null) {
      columns.put("steps", steps);
      columns.put("backend", group.context().backend().kind().toString());
      columns.put("link", group.context().backend().link());
    } else if (reference instanceof Work.OfChain pipeline) {
      columns.putAll(pipeline.chain().problem());
    }
    if (layouts != null) {
      columns.remove(LayoutTuning.COLUMN);
    }
    if (!peers.isEmpty()) {
      columns.put("peers", peers.stream().map(Peers::toString).collect(Collectors.joining("; ")));
    }
    return columns;
  }

  private Optional<Machine> machine() {
    var backend = group.context().backend();
    return Optional.ofNullable(machine)
        .or(
            () ->
                backend.ranksPerDevice() == 1
                    ? Optional.empty()
                    : Optional.of(Machine.nearest(backend.deviceName())));
  }

  private RoundPlan plan(int configurations) {
    return repeats == null
        ? RoundPlan.within(
                orElse(budget, Tuner.DEFAULT_BUDGET),
                configurations,
                Tuner.DEFAULT_REPEATS,
                Tuner.MAX_REPEATS)
            .untilDecided(group.context().timeToDecide())
        : RoundPlan.exactly(repeats);
  }

  private static <T> T orElse(@Nullable T value, T otherwise) {
    return value == null ? otherwise : value;
  }
}
