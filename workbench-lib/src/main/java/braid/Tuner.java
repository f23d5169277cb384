package braid;

import braid.Candidates.Work;
import braid.evidence.ChainStudy;
import braid.evidence.Crossovers;
import braid.evidence.Decision;
import braid.evidence.Study;
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
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.function.IntFunction;
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

  /// Stream counts that [#search] tries by default.
  public static final List<Integer> SEARCHED_STREAMS = List.of(1, 2);

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

  /// Largest number of ranks that [#sweepRanks] predicts.
  public static final int MAX_RANKS = 1024;

  static final int BUILDS_OF_SEARCH = 3;
  private static final int MAX_BUILDS = 100;
  public static final int MAX_REPEATS = Study.MAX_REPEATS;

  /// Untimed iterations before each measurement, which refill caches that others used.
  public static final int DEFAULT_WARMUP = 1;

  public static final int MAX_WARMUP = 1_000;

  /// The options that were set so far, shared by the tuners that a call returns.
  private final TunerRun draft;

  private final Class<C> kind;

  private Tuner(TunerRun draft, Class<C> kind) {
    this.draft = draft;
    this.kind = kind;
  }

  public static Tuner<Configuration> on(ProcessGroup group) {
    Given.check("group", group);
    return new Tuner<>(new TunerRun(group, null), Configuration.class);
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

  /// Adds the steps of another stack, beside the other configurations: `all_reduce: unfused` is a
  /// step of `all_reduce.py`. They time themselves in the study's form and are not verified. Run
  /// the tuner that is returned: its study has configurations of several kinds.
  public Tuner<Configuration> peers(Peers peers) {
    Given.check("peers", peers);
    if (draft.steps == null && draft.problem == null) {
      throw new BraidException(
          "peers need a problem but none is set; call gemm(spec), attention(spec) or steps(name) before");
    }
    peers.steps().forEach(step -> add(peers.title(step), new Work.OfPeers(peers, step)));
    draft.peers.add(peers);
    return new Tuner<>(draft, Configuration.class);
  }

  private Tuner<C> step(String name, Work work) {
    if (draft.steps == null) {
      throw new BraidException(
          "step `%s` needs the problem's name first; call steps(\"backward\") before"
              .formatted(name));
    }
    return add(name, work);
  }

  private Tuner<C> add(String name, Work work) {
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

  /// Adds a schedule of your own under its own name: `schedule(own.named("mine"))`. Run the tuner
  /// that is returned, as of [#schedule(String, Schedule)].
  public Tuner<Configuration> schedule(Schedule own) {
    Given.check("own", own);
    if (own.name().isEmpty()) {
      throw new BraidException(
          "a schedule in a study must have a name but has none; call own.named(\"mine\"), or schedule(\"mine\", own)");
    }
    return schedule(own.name(), own);
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
    boolean isMethod =
        Stream.concat(Stream.of(Method.values()), Stream.of(ContextParallel.Method.values()))
            .anyMatch(each -> each.toString().equals(name));
    if (isMethod || draft.named.containsKey(single) || draft.families.containsKey(name)) {
      throw new BraidException(
          "schedule `%s` has the name of another one or of a method; give each its own name"
              .formatted(name));
    }
    return spec;
  }

  /// Tries every tuning of the attention in each of these layouts, unfused too. The reference has
  /// the problem's layout. Ranks hold other tokens in each layout. A layout that leaves a rank
  /// without tokens is left out.
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

  /// Searches among all methods, transports, splits and streams that are not given, replayed and
  /// not: a simulation of this machine predicts every tuning ([#predictedOn] sets another machine),
  /// at most a third of them are measured and the fastest race each other, in half of the
  /// [#budget], and the study has those that may be the fastest. A line says what was measured. A
  /// search that did not end goes on with its samples when it is run again.
  public Tuner<C> search() {
    SetOnce.check("search", draft.searches ? "search()" : null);
    draft.grid.whole();
    draft.searches = true;
    return this;
  }

  /// Builds and measures everything several times, each time for its share of the rounds or budget;
  /// once by default, and three times after a [#search]. Pipelines of one tuning differ, for
  /// example by where their memory lies, which the rounds of one build do not show; intervals then
  /// also contain what each build says by itself. `braid run --starts` uses fresh ranks, too.
  public Tuner<C> builds(int number) {
    SetOnce.check("builds", draft.builds);
    draft.builds = within("builds", number, 1, MAX_BUILDS, BUILDS_OF_SEARCH);
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

  /// Sets the form of timing; by default as of [Pipeline#time(int)]. Back to back, a measurement is
  /// the last of [#warmup] + 1 iterations in flight.
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
    return draft.group.calls().exclusively(() -> "run of a tuner", () -> draft.study(kind));
  }

  /// Runs a study for each number of rows of the GEMM, and finds from which on a method is the
  /// fastest. Tunings that few rows do not allow are left out there. The budget is of each study.
  public Crossovers sweep(int... rows) {
    Given.check("rows", rows);
    var counts = Grid.distinct("rows", Arrays.stream(rows).boxed().toList());
    return draft
        .group
        .calls()
        .exclusively(() -> "sweep of a tuner", () -> draft.crossovers(counts));
  }

  /// Predicts from which number of ranks on a method is the fastest for the GEMM: on the machine of
  /// [#predictedOn], by default on hosts like this one. The group's own number of ranks is measured
  /// as well, if it is among them. Tunings that many ranks do not allow are left out there.
  public Crossovers sweepRanks(int... ranks) {
    Given.check("ranks", ranks);
    var counts =
        Grid.distinct("ranks", Arrays.stream(ranks).boxed().toList()).stream()
            .map(count -> within("ranks", count, 2, MAX_RANKS, "sweepRanks(8)"))
            .toList();
    return draft
        .group
        .calls()
        .exclusively(() -> "sweep of a tuner", () -> draft.crossoversOfRanks(counts));
  }

  /// Runs, and makes the result the decision for the problem on this machine. It is kept if it is
  /// certain, and `Overlap.auto()` takes it from then on.
  public Decision decide() {
    return draft.group.calls().exclusively(() -> "run of a tuner", draft::decision);
  }

  /// Finds a tuning for each pipeline of a chain by the time of the whole chain: pipeline after
  /// pipeline, each with the best tunings found for those before it. Infeasible tunings are
  /// skipped. A pipeline keeps its tuning on a group of one rank, or if another one reads its
  /// tensors in place; so do all if ranks share a GPU. The chain is not changed: [Chain#with]
  /// returns the tuned one.
  public ChainStudy tune(Chain chain) {
    Given.check("chain", chain);
    requireNoOther("tune(chain)", "a problem", draft.problem);
    requireNoOther("tune(chain)", "steps", draft.steps);
    draft.requireNoSearch("a chain");
    return draft.group.calls().exclusively(() -> "tune of " + chain, () -> draft.tuned(chain));
  }

  private static void requireNoOther(String name, String other, @Nullable Object value) {
    if (value != null) {
      throw new BraidException(
          "%s has no effect beside %s, which was %s; set one of the two"
              .formatted(name, other, value));
    }
  }

  private static int within(String name, int value, int least, int most, int suggested) {
    return within(name, value, least, most, "%s(%d)".formatted(name, suggested));
  }

  private static int within(String name, int value, int least, int most, String suggested) {
    if (value < least || value > most) {
      throw new BraidException(
          "%s must be %d..%d but was %d; try %s".formatted(name, least, most, value, suggested));
    }
    return value;
  }
}
