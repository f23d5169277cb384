package braid;

import braid.Candidates.Candidate;
import braid.Candidates.Work;
import braid.evidence.ChainStudy;
import braid.evidence.Study;
import braid.internal.report.statistics.RoundPlan;
import braid.internal.report.value.Caveats;
import braid.model.BraidException;
import braid.model.Configuration;
import braid.model.GemmSpec;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Timing;
import braid.model.Transport;
import braid.schedule.simulation.Machine;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Finds the fastest overlap for a problem, and whether the difference is significant.
///
/// Tries all combinations of [#methods], [#transports], [#streams] and [#splits], or exactly the
/// list of [#overlaps]. Every configuration is built and verified once; a wrong one is an error,
/// not a result. Then all are measured in rounds whose order a seed shuffles, the unfused reference
/// twice per round: [#repeats] rounds, or until all times are known to within 1% or the [#budget]
/// is spent. Every rank calls it alike and every rank gets the same [Study]: rank 0 decides and
/// broadcasts.
///
/// [#steps] compares anything that ranks do, in the same rounds: chains, pipelines, or code:
///
/// ```java
/// Tuner.on(world).steps("gradients").step("one-shot", () -> oneShot.allReduce(a, b)).step("ring", chain).run()
/// ```
///
/// All pipelines exist at once, so their buffers must fit together. Configurations that the problem
/// does not allow are refused before any pipeline is built. FP8 operands are scaled by 1.
public final class Tuner {
  public static final List<Integer> DEFAULT_SPLITS = List.of(1, 2, 4, 8, 16);
  public static final List<Integer> DEFAULT_STREAMS = List.of(1);
  public static final List<Method> DEFAULT_METHODS = List.of(Method.PIPELINED);
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

  private final ProcessGroup group;
  private @Nullable GemmSpec spec;
  private @Nullable List<Integer> splits;
  private @Nullable List<Integer> streams;
  private @Nullable List<Method> methods;
  private @Nullable List<Transport> transports;
  private @Nullable List<Overlap> explicit;
  private @Nullable Integer repeats;
  private @Nullable Duration budget;
  private @Nullable Integer warmup;
  private @Nullable Long seed;
  private @Nullable Timing timing;
  private @Nullable Machine machine;
  private @Nullable String steps;
  private final SequencedMap<Configuration, Work> named = new LinkedHashMap<>();

  private Tuner(ProcessGroup group) {
    this.group = group;
  }

  public static Tuner on(ProcessGroup group) {
    Given.check("group", group);
    return new Tuner(group);
  }

  /// Sets the problem.
  public Tuner gemm(GemmSpec problem) {
    Given.check("problem", problem);
    requireUnset("gemm", spec);
    requireNoOther("gemm", "steps", steps);
    spec = problem;
    return this;
  }

  /// Sets the problem to steps that [#step] adds, instead of a GEMM.
  ///
  /// @param problem name of what all of them do, for tables and charts
  public Tuner steps(String problem) {
    Given.check("problem", problem);
    requireUnset("steps", steps);
    requireNoOther("steps", "gemm", spec);
    if (problem.isBlank()) {
      throw new BraidException("the steps' problem must not be blank; try steps(\"backward\")");
    }
    steps = problem;
    return this;
  }

  /// Adds a chain as a step. The first step is the reference, which is measured twice per round.
  /// The caller closes the chain.
  public Tuner step(String name, Chain chain) {
    Given.check("name", name);
    Given.check("chain", chain);
    return step(name, new Work.OfChain(chain, false));
  }

  /// Adds a pipeline as a step.
  public Tuner step(String name, Pipeline pipeline) {
    Given.check("name", name);
    Given.check("pipeline", pipeline);
    return step(name, Chain.of(pipeline));
  }

  /// Adds code as a step: all ranks run it alike, and its time is from a barrier to its end on the
  /// slowest rank. It is not verified.
  public Tuner step(String name, Runnable code) {
    Given.check("name", name);
    Given.check("code", code);
    return step(name, new Work.OfCode(group, code));
  }

  private Tuner step(String name, Work work) {
    if (steps == null) {
      throw new BraidException(
          "step `%s` needs the problem's name first; call steps(\"backward\") before"
              .formatted(name));
    }
    if (named.putIfAbsent(new Configuration.Named(name), work) != null) {
      throw new BraidException(
          "step `%s` was given already; give each its own name".formatted(name));
    }
    return this;
  }

  public Tuner splits(int... counts) {
    Given.check("counts", counts);
    requireUnset("splits", splits);
    requireNoList("splits");
    splits = distinct("splits", Arrays.stream(counts).boxed().toList());
    return this;
  }

  public Tuner streams(int... counts) {
    Given.check("counts", counts);
    requireUnset("streams", streams);
    requireNoList("streams");
    streams = distinct("streams", Arrays.stream(counts).boxed().toList());
    return this;
  }

  /// Sets the methods to try; unfused is always measured beside them. Bulk has no splits and no
  /// streams, and is tried once over each transport.
  public Tuner methods(Method... tried) {
    Given.check("tried", tried);
    requireUnset("methods", methods);
    requireNoList("methods");
    methods = distinct("methods", List.of(tried));
    if (methods.contains(Method.UNFUSED)) {
      throw new BraidException(
          "methods must be ways to overlap but were %s; leave out unfused, it is always measured"
              .formatted(methods));
    }
    return this;
  }

  /// Sets the transports to try.
  public Tuner transports(Transport... tried) {
    Given.check("tried", tried);
    requireUnset("transports", transports);
    requireNoList("transports");
    transports = distinct("transports", List.of(tried));
    return this;
  }

  /// Sets the exact list of configurations: for uneven boundaries, orders, priorities and
  /// everything else that is not a grid.
  public Tuner overlaps(Overlap... tunings) {
    Given.check("tunings", tunings);
    return overlaps(List.of(tunings));
  }

  public Tuner overlaps(Collection<Overlap> tunings) {
    Given.check("tunings", tunings);
    requireUnset("overlaps", explicit);
    if (splits != null || streams != null || methods != null || transports != null) {
      throw new BraidException(
          "overlaps lists every configuration, so splits, streams, methods and transports have"
              + " no effect beside it; put all into overlaps(...), or leave it out");
    }
    explicit = distinct("overlaps", List.copyOf(tunings));
    for (var how : explicit) {
      if (how.method() == Method.UNFUSED) {
        throw new BraidException(
            "overlaps must be ways to overlap but one was `%s`; leave it out, it is always measured"
                .formatted(how));
      }
    }
    return this;
  }

  /// Sets the exact number of rounds, instead of measuring until the times are precise.
  public Tuner repeats(int rounds) {
    requireUnset("repeats", repeats);
    requireNoOther("repeats", "budget", budget);
    repeats = within("repeats", rounds, MIN_REPEATS, MAX_REPEATS, DEFAULT_REPEATS);
    return this;
  }

  /// Sets the time for measuring; [#DEFAULT_BUDGET] by default. After the first rounds more are
  /// measured until all times are known to within 1%, or the budget is spent. Rank 0's clock
  /// counts.
  public Tuner budget(Duration time) {
    Given.check("time", time);
    requireUnset("budget", budget);
    requireNoOther("budget", "repeats", repeats);
    if (time.isNegative() || time.compareTo(MAX_BUDGET) > 0) {
      throw new BraidException(
          "budget must be 0 s..%d s but was %s; try budget(Duration.ofSeconds(%d))"
              .formatted(MAX_BUDGET.toSeconds(), time, DEFAULT_BUDGET.toSeconds()));
    }
    budget = time;
    return this;
  }

  /// Sets the number of untimed iterations before each measurement.
  public Tuner warmup(int iterations) {
    requireUnset("warmup", warmup);
    warmup = within("warmup", iterations, 0, MAX_WARMUP, DEFAULT_WARMUP);
    return this;
  }

  /// Sets the seed that shuffles the order of measurement, so that it can be repeated; random by
  /// default. Rank 0's seed applies to all ranks.
  public Tuner seed(long shuffling) {
    requireUnset("seed", seed);
    seed = shuffling;
    return this;
  }

  /// Sets the form of timing; by default that of [Pipeline#time(int)]. Back to back, a measurement
  /// is the last of [#warmup] + 1 iterations in flight.
  public Tuner timing(Timing form) {
    Given.check("form", form);
    requireUnset("timing", timing);
    timing = form;
    return this;
  }

  /// Sets the machine on which every configuration is predicted too. By default nothing is, unless
  /// ranks share a GPU: then on the built-in machine nearest to a host of such GPUs, since the
  /// times are no evidence. Steps of code and calls of libraries have no prediction.
  public Tuner predictedOn(Machine described) {
    Given.check("described", described);
    requireUnset("predictedOn", machine == null ? null : machine.name());
    machine = described;
    return this;
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

  private Timing form() {
    return orElse(timing, group.context().backend().timing());
  }

  public Study run() {
    return group.calls().exclusively(() -> "run of a tuner", this::study);
  }

  private Study study() {
    if (steps != null) {
      return compared(steps);
    }
    var problem = spec;
    if (problem == null) {
      throw new BraidException(
          "a tuner needs a problem but has none; call gemm(spec) or steps(name) before run()");
    }
    var overlaps = overlaps();
    overlaps.forEach(how -> Feasibility.check(problem, how, group));
    return study(
        overlaps,
        how -> new Candidate(how, new Work.OfChain(pipeline(problem, how), true)),
        Map.of());
  }

  private Study compared(String problem) {
    options()
        .forEach((name, value) -> requireNoOther(name, "steps", value == null ? null : problem));
    if (named.size() < 2) {
      throw new BraidException(
          "steps are compared with the first, so there must be 2 or more but were %d; add step(name, chain) or step(name, () -> ...)"
              .formatted(named.size()));
    }
    group.agree(
        "the tuner's steps",
        named.keySet().stream().map(String::valueOf).collect(Collectors.joining(", ")));
    boolean code = named.values().stream().anyMatch(Work.OfCode.class::isInstance);
    if (code && timing == Timing.BACK_TO_BACK) {
      throw new BraidException(
          "timing must be latency if a step is code, which runs once at a time, but was %s; leave it out"
              .formatted(timing));
    }
    var form = code ? Timing.LATENCY : form();
    var columns = new LinkedHashMap<String, String>();
    columns.put("steps", problem);
    columns.put("backend", group.context().backend().kind().toString());
    columns.put("link", group.context().backend().link());
    return measured(named.size() - 1, form)
        .study(
            ready -> named.forEach((step, work) -> ready.add(new Candidate(step, work))),
            _ -> columns);
  }

  /// Options that are about tunings.
  private Map<String, @Nullable Object> options() {
    var options = new LinkedHashMap<String, @Nullable Object>();
    options.put("splits", splits);
    options.put("streams", streams);
    options.put("methods", methods);
    options.put("transports", transports);
    options.put("overlaps", explicit);
    return options;
  }

  private Chain pipeline(GemmSpec problem, Overlap how) {
    var builder = Pipeline.on(group).gemm(problem).overlap(how);
    if (problem.isScaled()) {
      var _ = problem.outputDtype().isFp8() ? builder.scales(1, 1, 1) : builder.scales(1, 1);
    }
    return Chain.owning(builder.build());
  }

  /// Finds a tuning for each pipeline of a chain, its attentions excepted, by the time of the whole
  /// chain: pipeline after pipeline, each with the best tunings found for those before it.
  /// Infeasible tunings are skipped; a pipeline on a group of one rank keeps its tuning, and so do
  /// all if ranks share a GPU. The chain is not changed: [Chain#with] returns the tuned one.
  public ChainStudy tune(Chain chain) {
    Given.check("chain", chain);
    return group.calls().exclusively(() -> "tune of " + chain, () -> tuned(chain));
  }

  private ChainStudy tuned(Chain chain) {
    requireNoOther("gemm", "a chain", spec);
    requireNoOther("steps", "a chain", steps);
    var best = new ArrayList<>(chain.pipelines().stream().map(Pipeline::tuning).toList());
    var tuned = new ArrayList<ChainStudy.Tuned>();
    for (int at = 0; at < best.size(); at++) {
      var pipeline = chain.pipelines().get(at);
      var feasible = overlaps().stream().filter(pipeline::isFeasible).toList();
      if (pipeline.group().size() == 1 || feasible.isEmpty()) {
        continue;
      }
      int index = at;
      int number = chain.pipelines().indexOf(pipeline) + 1;
      var study =
          study(
              feasible,
              how -> {
                var tunings = new ArrayList<>(best);
                tunings.set(index, how);
                return new Candidate(how, new Work.OfChain(chain.with(tunings), true));
              },
              Map.of("tuned", "pipeline %d".formatted(number)));
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
          "%s has no pipeline that can have any of %s; give other overlaps"
              .formatted(chain, overlaps()));
    }
    return new ChainStudy(best, tuned);
  }

  /// @param build builds the candidate of a tuning
  /// @param also additional columns of the problem
  private Study study(
      List<Overlap> overlaps, Function<Overlap, Candidate> build, Map<String, String> also) {
    return measured(overlaps.size(), form())
        .study(
            ready -> {
              ready.add(build.apply(Overlap.unfused()));
              for (var overlap : overlaps) {
                ready.add(build.apply(overlap));
              }
            },
            reference -> {
              var columns =
                  new LinkedHashMap<>(((Work.OfChain) reference.work()).chain().problem());
              columns.putAll(also);
              return columns;
            });
  }

  /// Returns the measurement of that number of configurations beside the reference.
  private Candidates measured(int configurations, Timing form) {
    return new Candidates(
        group,
        configurations,
        plan(configurations),
        orElse(warmup, DEFAULT_WARMUP),
        form,
        orElse(seed, ThreadLocalRandom.current().nextLong()),
        machine());
  }

  private RoundPlan plan(int configurations) {
    return repeats == null
        ? RoundPlan.within(
                orElse(budget, DEFAULT_BUDGET), configurations, DEFAULT_REPEATS, MAX_REPEATS)
            .untilDecided(group.context().timeToDecide())
        : RoundPlan.exactly(repeats);
  }

  private List<Overlap> overlaps() {
    if (explicit != null) {
      return explicit;
    }
    var tried = orElse(methods, DEFAULT_METHODS);
    if (tried.equals(List.of(Method.BULK)) && (splits != null || streams != null)) {
      throw new BraidException(
          "bulk has 1 split and 1 stream, but %s was given; leave it out, or add a method"
              .formatted(splits != null ? "splits " + splits : "streams " + streams));
    }
    var overlaps = new LinkedHashSet<Overlap>();
    for (var method : tried) {
      for (var transport : orElse(transports, DEFAULT_TRANSPORTS)) {
        if (method == Method.BULK) {
          overlaps.add(Overlap.bulk().over(transport));
          continue;
        }
        for (int stream : orElse(streams, DEFAULT_STREAMS)) {
          for (int split : orElse(splits, DEFAULT_SPLITS)) {
            overlaps.add(overlap(method, split).streams(stream).over(transport));
          }
        }
      }
    }
    return List.copyOf(overlaps);
  }

  private static Overlap overlap(Method method, int splits) {
    return switch (method) {
      case PIPELINED -> Overlap.pipelined(splits);
      case DIRECT -> Overlap.direct(splits);
      case RING -> Overlap.ring(splits);
      case BULK -> Overlap.bulk();
      case UNFUSED -> Overlap.unfused();
    };
  }

  private static <T> T orElse(@Nullable T value, T otherwise) {
    return value == null ? otherwise : value;
  }

  private static void requireUnset(String name, @Nullable Object value) {
    if (value != null) {
      throw new BraidException(name + " was given already, as " + value + "; give it once");
    }
  }

  private static void requireNoOther(String name, String other, @Nullable Object value) {
    if (value != null) {
      throw new BraidException(
          "%s has no effect beside %s, which was %s; set one of the two"
              .formatted(name, other, value));
    }
  }

  private void requireNoList(String name) {
    if (explicit != null) {
      throw new BraidException(
          "%s has no effect beside overlaps, which lists every configuration; put all into overlaps(...)"
              .formatted(name));
    }
  }

  private static <T> List<T> distinct(String name, List<T> values) {
    if (values.isEmpty() || values.stream().distinct().count() < values.size()) {
      throw new BraidException(
          "%s must be one or more different values but were %s"
              .formatted(
                  name,
                  values.stream()
                      .map(String::valueOf)
                      .collect(Collectors.joining(", ", "(", ")"))));
    }
    return values;
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
