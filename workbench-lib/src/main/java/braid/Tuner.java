package braid;

import braid.Candidates.Work;
import braid.evidence.ChainStudy;
import braid.evidence.Study;
import braid.internal.report.statistics.RoundPlan;
import braid.internal.report.value.Caveats;
import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.Configuration;
import braid.model.Configuration.LayoutTuning;
import braid.model.Configuration.Named;
import braid.model.Configuration.OwnSchedule;
import braid.model.ContextParallel;
import braid.model.GemmSpec;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Problem;
import braid.model.Timing;
import braid.model.TokenLayout;
import braid.model.Transport;
import braid.model.Tuning;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Finds the fastest configuration for a problem, and whether the difference is significant:
///
/// ```java
/// Study<Overlap> study = Tuner.on(world).gemm(spec).splits(1, 2, 4).streams(1, 2).run();
/// Study<ContextParallel> study = Tuner.on(world).attention(spec).run();
/// ```
///
/// Tries all combinations of [#methods], [#transports], [#streams] and [#splits] that the problem
/// allows, or exactly the list of [#overlaps], and schedules of your own beside them ([#schedule],
/// [#schedules]). Every configuration is built and verified once; a wrong one is an error, not a
/// result. Then all are measured in rounds whose order a seed shuffles, the unfused reference twice
/// per round: [#repeats] rounds, or until all times are known to within 1% or the [#budget] is
/// spent. Every rank calls it alike and every rank gets the same [Study]: rank 0 decides and
/// broadcasts.
///
/// [#steps] compares anything that ranks do, in the same rounds: chains, pipelines, or code:
///
/// ```java
/// Tuner.on(world).steps("gradients").step("one-shot", () -> oneShot.allReduce(a, b)).step("ring", chain).run()
/// ```
///
/// All pipelines exist at once, so their buffers must fit together. FP8 operands are scaled by 1. A
/// backward pass reads an attention that has run once. Plain loops verify attention, so a long one
/// is verified on its first tokens only, and a line says so.
///
/// @param <C> kind of the configurations that it tries
public final class Tuner<C extends Configuration> {
  public static final List<Integer> DEFAULT_SPLITS = List.of(1, 2, 4, 8, 16);

  /// Default split counts of attention, whose chunks are tokens or heads.
  public static final List<Integer> DEFAULT_ATTENTION_SPLITS = List.of(1, 2, 4);

  public static final List<Integer> DEFAULT_STREAMS = List.of(1);
  public static final List<Method> DEFAULT_METHODS = List.of(Method.PIPELINED);

  /// Default methods of attention, as far as the heads can be divided.
  public static final List<ContextParallel.Method> DEFAULT_ATTENTION_METHODS =
      List.of(
          ContextParallel.Method.RING,
          ContextParallel.Method.ALL_GATHER_KV,
          ContextParallel.Method.ULYSSES,
          ContextParallel.Method.TWO_LEVEL);

  public static final List<Transport> DEFAULT_TRANSPORTS = List.of(Overlap.DEFAULT_TRANSPORT);

  /// Default of the fewest rounds; many configurations need a few more before one of them can be
  /// called better than another.
  public static final int DEFAULT_REPEATS = 12;

  /// Fewest rounds: with fewer, no interval holds a median with 95% confidence.
  public static final int MIN_REPEATS = 6;

  /// Default time for measuring. It limits the additional rounds; the first rounds are always
  /// measured.
  public static final Duration DEFAULT_BUDGET = Duration.ofSeconds(20);

  public static final Duration MAX_BUDGET = Duration.ofDays(1);

  public static final int MAX_REPEATS = Study.MAX_REPEATS;

  /// Untimed iterations before each measurement, which refill caches that others used.
  public static final int DEFAULT_WARMUP = 1;

  public static final int MAX_WARMUP = 1_000;

  private final Draft draft;
  private final Class<C> kind;

  /// What was set so far. Tuners of one draft differ in the kind of their study only.
  private static final class Draft {
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

    /// True if a step is code.
    boolean hasCode;

    /// Steps, or schedules of one's own.
    final SequencedMap<Configuration, Supplier<Work>> named = new LinkedHashMap<>();

    final SequencedMap<String, IntFunction<Supplier<Work>>> families = new LinkedHashMap<>();

    Draft(ProcessGroup group) {
      this.group = group;
      grid = new Grid(group);
      pipelines = new TunedPipelines(group);
    }
  }

  private Tuner(Draft draft, Class<C> kind) {
    this.draft = draft;
    this.kind = kind;
  }

  public static Tuner<Configuration> on(ProcessGroup group) {
    Given.check("group", group);
    return new Tuner<>(new Draft(group), Configuration.class);
  }

  /// Sets the problem.
  public Tuner<Overlap> gemm(GemmSpec problem) {
    return problem(problem, Overlap.class);
  }

  /// Sets the problem.
  public Tuner<ContextParallel> attention(AttentionSpec problem) {
    return problem(problem, ContextParallel.class);
  }

  /// Sets the problem to a backward pass: `attention(spec.backward())`.
  public Tuner<ContextParallel> attention(AttentionGradientSpec problem) {
    return problem(problem, ContextParallel.class);
  }

  private <D extends Configuration> Tuner<D> problem(@Nullable Problem problem, Class<D> tunings) {
    Given.check("problem", problem);
    requireNoProblem();
    draft.problem = problem;
    return new Tuner<>(draft, tunings);
  }

  /// Sets the problem to steps that [#step] adds.
  ///
  /// @param problem name of what all of them do, for tables and charts
  public Tuner<Named> steps(String problem) {
    Given.check("problem", problem);
    requireNoProblem();
    if (problem.isBlank()) {
      throw new BraidException("the steps' problem must not be blank; try steps(\"backward\")");
    }
    draft.steps = problem;
    return new Tuner<>(draft, Named.class);
  }

  private void requireNoProblem() {
    SetOnce.check("problem", draft.problem);
    SetOnce.check("problem", draft.steps);
  }

  /// Adds a chain as a step. The first step is the reference, which is measured twice per round.
  /// The caller closes the chain.
  public Tuner<C> step(String name, Chain chain) {
    Given.check("name", name);
    Given.check("chain", chain);
    return step(name, new Work.OfChain(chain, chain::verify, () -> {}));
  }

  /// Adds a pipeline as a step.
  public Tuner<C> step(String name, Pipeline link) {
    Given.check("name", name);
    Given.check("link", link);
    return step(name, Chain.of(link));
  }

  /// Adds code as a step: all ranks run it alike, and its time is from a barrier to its end on the
  /// slowest rank. It is not verified.
  public Tuner<C> step(String name, Runnable code) {
    Given.check("name", name);
    Given.check("code", code);
    draft.hasCode = true;
    return step(name, new Work.OfCode(draft.group, code));
  }

  private Tuner<C> step(String name, Work work) {
    if (draft.steps == null) {
      throw new BraidException(
          "step `%s` needs the problem's name first; call steps(\"backward\") before"
              .formatted(name));
    }
    if (draft.named.putIfAbsent(new Named(name), () -> work) != null) {
      throw new BraidException(
          "step `%s` was given already; give each its own name".formatted(name));
    }
    return this;
  }

  /// Adds a schedule of your own for the problem, beside the other configurations. Run the tuner
  /// that is returned: its study has configurations of several kinds.
  public Tuner<Configuration> schedule(String name, Schedule own) {
    Given.check("name", name);
    Given.check("own", own);
    var spec = ownProblem(name);
    draft.named.put(new OwnSchedule(name, 0), () -> draft.pipelines.build(spec, own));
    return new Tuner<>(draft, Configuration.class);
  }

  /// Adds a schedule of your own for each of the [#splits], which tables and charts show as a
  /// curve.
  ///
  /// @param family returns the schedule of that number of splits
  public Tuner<Configuration> schedules(String name, IntFunction<Schedule> family) {
    Given.check("name", name);
    Given.check("family", family);
    var spec = ownProblem(name);
    draft.families.put(
        name,
        splits -> {
          var own = family.apply(splits);
          return () -> draft.pipelines.build(spec, own);
        });
    return new Tuner<>(draft, Configuration.class);
  }

  private Problem ownProblem(String name) {
    var spec = draft.problem;
    if (spec == null) {
      throw new BraidException(
          "schedule `%s` needs a problem but none is set; call gemm(spec) or attention(spec) before"
              .formatted(name));
    }
    var single = new OwnSchedule(name, 0);
    boolean isMethod = Stream.of(Method.values()).anyMatch(each -> each.toString().equals(name));
    if (isMethod || draft.named.containsKey(single) || draft.families.containsKey(name)) {
      throw new BraidException(
          "schedule `%s` has the name of another one or of a method; give each its own name"
              .formatted(name));
    }
    return spec;
  }

  /// Tries every tuning of the attention in each of these layouts, unfused too. The reference has
  /// the problem's layout. Ranks hold other tokens in each layout, as many in all of them.
  public Tuner<LayoutTuning> layouts(TokenLayout... tried) {
    Given.check("tried", tried);
    SetOnce.check("layouts", draft.layouts);
    if (draft.problem == null || draft.problem instanceof GemmSpec) {
      throw new BraidException(
          "layouts are of attention but the problem is %s; call attention(spec) before"
              .formatted(draft.problem == null ? "not set" : draft.problem));
    }
    draft.layouts = Grid.distinct("layouts", List.of(tried));
    return new Tuner<>(draft, LayoutTuning.class);
  }

  /// Sets the numbers of splits to try.
  public Tuner<C> splits(int... counts) {
    Given.check("counts", counts);
    draft.grid.splits(Arrays.stream(counts).boxed().toList(), !draft.families.isEmpty());
    return this;
  }

  public Tuner<C> streams(int... counts) {
    Given.check("counts", counts);
    draft.grid.streams(Arrays.stream(counts).boxed().toList());
    return this;
  }

  /// Sets the methods to try; unfused is always measured beside them. Bulk has no splits and no
  /// streams, and is tried once over each transport.
  public Tuner<C> methods(Method... tried) {
    Given.check("tried", tried);
    draft.grid.methods(List.of(tried));
    return this;
  }

  /// Sets the methods of attention to try; unfused is always measured beside them. Two levels are
  /// tried with every number of ranks that exchange heads.
  public Tuner<C> methods(ContextParallel.Method... tried) {
    Given.check("tried", tried);
    draft.grid.methodsOfAttention(List.of(tried));
    return this;
  }

  /// Sets the transports to try.
  public Tuner<C> transports(Transport... tried) {
    Given.check("tried", tried);
    draft.grid.transports(List.of(tried));
    return this;
  }

  /// Sets the exact list of configurations: for uneven boundaries, orders, priorities and
  /// everything else that is not a grid. A tuning of attention is a [ContextParallel].
  public Tuner<C> overlaps(Tuning... tunings) {
    Given.check("tunings", tunings);
    return overlaps(List.of(tunings));
  }

  public Tuner<C> overlaps(Collection<? extends Tuning> tunings) {
    Given.check("tunings", tunings);
    draft.grid.exactly(List.copyOf(tunings), !draft.families.isEmpty());
    return this;
  }

  /// Sets the exact number of rounds, instead of measuring until the times are precise.
  public Tuner<C> repeats(int rounds) {
    SetOnce.check("repeats", draft.repeats);
    requireNoOther("repeats", "budget", draft.budget);
    draft.repeats = within("repeats", rounds, MIN_REPEATS, MAX_REPEATS, DEFAULT_REPEATS);
    return this;
  }

  /// Sets the time for measuring; [#DEFAULT_BUDGET] by default. After the first rounds more are
  /// measured until all times are known to within 1%, or the budget is spent. Rank 0's clock
  /// counts.
  public Tuner<C> budget(Duration time) {
    Given.check("time", time);
    SetOnce.check("budget", draft.budget);
    requireNoOther("budget", "repeats", draft.repeats);
    if (time.isNegative() || time.compareTo(MAX_BUDGET) > 0) {
      throw new BraidException(
          "budget must be 0 s..%d s but was %s; try budget(Duration.ofSeconds(%d))"
              .formatted(MAX_BUDGET.toSeconds(), time, DEFAULT_BUDGET.toSeconds()));
    }
    draft.budget = time;
    return this;
  }

  /// Sets the number of untimed iterations before each measurement.
  public Tuner<C> warmup(int iterations) {
    SetOnce.check("warmup", draft.warmup);
    draft.warmup = within("warmup", iterations, 0, MAX_WARMUP, DEFAULT_WARMUP);
    return this;
  }

  /// Sets the seed that shuffles the order of measurement, so that it can be repeated; random by
  /// default. Rank 0's seed applies to all ranks.
  public Tuner<C> seed(long shuffling) {
    SetOnce.check("seed", draft.seed);
    draft.seed = shuffling;
    return this;
  }

  /// Sets the form of timing; by default that of [Pipeline#time(int)]. Back to back, a measurement
  /// is the last of [#warmup] + 1 iterations in flight.
  public Tuner<C> timing(Timing form) {
    Given.check("form", form);
    SetOnce.check("timing", draft.timing);
    draft.timing = form;
    return this;
  }

  /// Sets the machine on which every configuration is predicted too. By default nothing is, unless
  /// ranks share a GPU: then on the built-in machine nearest to a host of such GPUs, since the
  /// times are no evidence. Steps of code and calls of libraries have no prediction.
  public Tuner<C> predictedOn(Machine described) {
    Given.check("described", described);
    SetOnce.check("predictedOn", draft.machine == null ? null : draft.machine.name());
    draft.machine = described;
    return this;
  }

  public Study<C> run() {
    return draft.group.calls().exclusively(() -> "run of a tuner", this::study);
  }

  private Study<C> study() {
    var problem = draft.problem;
    var notes = new ArrayList<String>();
    var work = new LinkedHashMap<Configuration, Supplier<Work>>();
    if (problem == null) {
      requireSteps();
    } else if (draft.layouts == null) {
      add(problem, tuning -> tuning, work, notes);
    } else {
      var own = TunedPipelines.attention(problem).orElseThrow().layout();
      var unfused = new LayoutTuning(own, ContextParallel.unfused());
      work.put(unfused, () -> draft.pipelines.build(problem, unfused.tuning()));
      for (var layout : draft.layouts) {
        add(
            TunedPipelines.divided(problem, layout),
            tuning -> new LayoutTuning(layout, (ContextParallel) tuning),
            work,
            notes);
      }
    }
    work.putAll(draft.named);
    draft.families.forEach(
        (name, family) ->
            draft
                .grid
                .splitCounts()
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
    return measured(work, Map.of(), notes).cast(kind);
  }

  private void requireSteps() {
    if (draft.steps == null) {
      throw new BraidException(
          "a tuner needs a problem but has none; call gemm(spec), attention(spec) or steps(name) before run()");
    }
    draft.grid.requireNone(draft.steps);
    if (draft.named.size() < 2) {
      throw new BraidException(
          "steps are compared with the first, so there must be 2 or more but were %d; add step(name, chain) or step(name, () -> ...)"
              .formatted(draft.named.size()));
    }
    if (draft.hasCode && draft.timing == Timing.BACK_TO_BACK) {
      throw new BraidException(
          "timing must be latency if a step is code, which runs once at a time, but was %s; leave it out"
              .formatted(draft.timing));
    }
  }

  /// Adds the unfused reference of a problem and the tunings to try.
  private void add(
      Problem problem,
      Function<Tuning, Configuration> configuration,
      SequencedMap<Configuration, Supplier<Work>> work,
      List<String> notes) {
    var unfused = unfused(problem);
    work.putIfAbsent(configuration.apply(unfused), () -> draft.pipelines.build(problem, unfused));
    for (var tuning : draft.grid.possible(problem, notes)) {
      work.put(configuration.apply(tuning), () -> draft.pipelines.build(problem, tuning));
    }
    var verified = draft.pipelines.verified(problem, unfused);
    if (!verified.equals(problem)) {
      notes.add("plain loops verify a part of the tokens: " + verified);
    }
  }

  /// Finds a tuning for each pipeline of a chain by the time of the whole chain: pipeline after
  /// pipeline, each with the best tunings found for those before it. Infeasible tunings are
  /// skipped. A pipeline keeps its tuning on a group of one rank, or if another one reads its
  /// tensors in place; so do all if ranks share a GPU. The chain is not changed: [Chain#with]
  /// returns the tuned one.
  public ChainStudy tune(Chain chain) {
    Given.check("chain", chain);
    return draft.group.calls().exclusively(() -> "tune of " + chain, () -> tuned(chain));
  }

  private ChainStudy tuned(Chain chain) {
    requireNoOther("tune(chain)", "a problem", draft.problem);
    requireNoOther("tune(chain)", "steps", draft.steps);
    var best = new ArrayList<>(chain.pipelines().stream().map(Pipeline::tuning).toList());
    var tuned = new ArrayList<ChainStudy.Tuned>();
    for (int at = 0; at < best.size(); at++) {
      var pipeline = chain.pipelines().get(at);
      var feasible =
          draft.grid.all(pipeline.problem()).stream().filter(pipeline::isFeasible).toList();
      if (pipeline.group().size() == 1
          || feasible.isEmpty()
          || chain.reader(pipeline).isPresent()) {
        continue;
      }
      int index = at;
      int number = chain.pipelines().indexOf(pipeline) + 1;
      var work = new LinkedHashMap<Configuration, Supplier<Work>>();
      Stream.concat(Stream.of(unfused(pipeline.problem())), feasible.stream())
          .forEach(
              how ->
                  work.put(
                      how,
                      () -> {
                        var tunings = new ArrayList<>(best);
                        tunings.set(index, how);
                        var changed = chain.with(tunings);
                        return new Work.OfChain(changed, changed::verify, changed::close);
                      }));
      var columns = Map.of("tuned", "pipeline %d".formatted(number));
      var study = measured(work, columns, List.of()).cast(Tuning.class);
      tuned.add(new ChainStudy.Tuned(number, pipeline.problem().toString(), study));
      if (study.timesCount()) {
        best.set(at, study.best());
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

  private static Tuning unfused(Problem problem) {
    return problem instanceof GemmSpec ? Overlap.unfused() : ContextParallel.unfused();
  }

  /// Builds, verifies and measures the work of each configuration; the first is the reference.
  ///
  /// @param also additional columns of the problem
  /// @param notes lines to show beside the progress
  private Study<?> measured(
      SequencedMap<Configuration, Supplier<Work>> work,
      Map<String, String> also,
      List<String> notes) {
    var group = draft.group;
    group.agree(
        "the tuner's configurations",
        work.keySet().stream().map(String::valueOf).collect(Collectors.joining(", ")));
    int configurations = work.size() - 1;
    return new Candidates(
            group,
            configurations,
            plan(configurations),
            orElse(draft.warmup, DEFAULT_WARMUP),
            draft.hasCode
                ? Timing.LATENCY
                : orElse(draft.timing, group.context().backend().timing()),
            orElse(draft.seed, ThreadLocalRandom.current().nextLong()),
            machine())
        .study(
            work,
            reference -> {
              var columns = problem(reference);
              columns.putAll(also);
              return columns;
            },
            notes);
  }

  private SequencedMap<String, String> problem(Work reference) {
    var columns = new LinkedHashMap<String, String>();
    if (draft.steps != null) {
      columns.put("steps", draft.steps);
      columns.put("backend", draft.group.context().backend().kind().toString());
      columns.put("link", draft.group.context().backend().link());
    } else if (reference instanceof Work.OfChain pipeline) {
      columns.putAll(pipeline.chain().problem());
    }
    if (draft.layouts != null) {
      columns.remove(LayoutTuning.COLUMN);
    }
    return columns;
  }

  private Optional<Machine> machine() {
    var backend = draft.group.context().backend();
    return Optional.ofNullable(draft.machine)
        .or(
            () ->
                backend.ranksPerDevice() == 1
                    ? Optional.empty()
                    : Optional.of(Machine.nearest(backend.deviceName())));
  }

  private RoundPlan plan(int configurations) {
    return draft.repeats == null
        ? RoundPlan.within(
                orElse(draft.budget, DEFAULT_BUDGET), configurations, DEFAULT_REPEATS, MAX_REPEATS)
            .untilDecided(draft.group.context().timeToDecide())
        : RoundPlan.exactly(draft.repeats);
  }

  private static <T> T orElse(@Nullable T value, T otherwise) {
    return value == null ? otherwise : value;
  }

  private static void requireNoOther(String name, String other, @Nullable Object value) {
    if (value != null) {
      throw new BraidException(
          "%s has no effect beside %s, which was %s; set one of the two"
              .formatted(name, other, value));
    }
  }

  private static int within(String name, int value, int least, int most, int suggested) {
    if (value < least || value > most) {
      throw new BraidException(
          "%s must be %d..%d but was %d; try %s(%d)"
              .formatted(name, least, most, value, name, suggested));
    }
    return value;
  }
}
