package braid;

import braid.evidence.ChainStudy;
import braid.evidence.Study;
import braid.internal.context.RankContext;
import braid.internal.evidence.TuningProgress;
import braid.internal.report.json.ReadingsJson;
import braid.internal.report.progress.Progress;
import braid.internal.report.statistics.RoundPlan;
import braid.internal.report.statistics.Rounds;
import braid.model.BraidException;
import braid.model.GemmSpec;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Reading;
import braid.model.Timing;
import braid.model.Transport;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
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

  private static final int ROOT = 0;

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

  private Tuner(ProcessGroup group) {
    this.group = group;
  }

  public static Tuner on(ProcessGroup group) {
    return new Tuner(group);
  }

  /// Sets the problem.
  public Tuner gemm(GemmSpec problem) {
    requireUnset("gemm", spec);
    spec = problem;
    return this;
  }

  public Tuner splits(int... counts) {
    requireUnset("splits", splits);
    requireNoList("splits");
    splits = distinct("splits", Arrays.stream(counts).boxed().toList());
    return this;
  }

  public Tuner streams(int... counts) {
    requireUnset("streams", streams);
    requireNoList("streams");
    streams = distinct("streams", Arrays.stream(counts).boxed().toList());
    return this;
  }

  /// Sets the methods to try; unfused is always measured beside them. Bulk has no splits and no
  /// streams, and is tried once over each transport.
  public Tuner methods(Method... tried) {
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
    requireUnset("transports", transports);
    requireNoList("transports");
    transports = distinct("transports", List.of(tried));
    return this;
  }

  /// Sets the exact list of configurations: for uneven boundaries, orders, priorities and
  /// everything else that is not a grid.
  public Tuner overlaps(Overlap... tunings) {
    requireUnset("overlaps", explicit);
    if (splits != null || streams != null || methods != null || transports != null) {
      throw new BraidException(
          "overlaps lists every configuration, so splits, streams, methods and transports have"
              + " no effect beside it; put all into overlaps(...), or leave it out");
    }
    explicit = distinct("overlaps", List.of(tunings));
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
    requireUnset("timing", timing);
    timing = form;
    return this;
  }

  private Timing form() {
    return orElse(timing, group.context().backend().timing());
  }

  public Study run() {
    var problem = spec;
    if (problem == null) {
      throw new BraidException(
          "a tuner needs a problem but has none; call gemm(spec) before run()");
    }
    var overlaps = overlaps();
    overlaps.forEach(how -> Feasibility.check(problem, how, group));
    return study(overlaps, how -> new Candidate(how, pipeline(problem, how), true), Map.of());
  }

  private Chain pipeline(GemmSpec problem, Overlap how) {
    var builder = Pipeline.on(group).gemm(problem).overlap(how);
    if (problem.isScaled()) {
      var _ = problem.outputDtype().isFp8() ? builder.scales(1, 1, 1) : builder.scales(1, 1);
    }
    return Chain.owning(builder.build());
  }

  /// Finds a tuning for each pipeline of a chain, by the time of the whole chain: pipeline after
  /// pipeline, each with the best tunings found for those before it. Infeasible tunings are
  /// skipped; a pipeline on a group of one rank keeps its tuning. The chain is not changed:
  /// [Chain#with] returns the tuned one.
  public ChainStudy tune(Chain chain) {
    requireNoOther("gemm", "a chain", spec);
    var best = new ArrayList<>(chain.pipelines().stream().map(Pipeline::overlap).toList());
    var tuned = new ArrayList<ChainStudy.Tuned>();
    for (int at = 0; at < best.size(); at++) {
      var pipeline = chain.pipelines().get(at);
      var feasible = overlaps().stream().filter(pipeline::isFeasible).toList();
      if (pipeline.group().size() == 1 || feasible.isEmpty()) {
        continue;
      }
      int index = at;
      var study =
          study(
              feasible,
              how -> {
                var tunings = new ArrayList<>(best);
                tunings.set(index, how);
                return new Candidate(how, chain.with(tunings), true);
              },
              Map.of("tuned", "pipeline %d".formatted(at + 1)));
      tuned.add(new ChainStudy.Tuned(at + 1, pipeline.spec().toString(), study));
      best.set(at, study.best());
    }
    if (tuned.isEmpty()) {
      throw new BraidException(
          "%s has no pipeline that can have any of %s; give other overlaps"
              .formatted(chain, overlaps()));
    }
    return new ChainStudy(best, tuned);
  }

  /// Compares chains, such as several ways to do one step. Each is labelled by its first tuning
  /// that is not unfused. The caller closes them.
  ///
  /// @param reference the unfused chain
  public Study compare(Chain reference, Chain... others) {
    requireNoOther("gemm", "a comparison", spec);
    var chains = new LinkedHashMap<Overlap, Chain>();
    for (var each : others) {
      var how = shown(each);
      if (how.method() == Method.UNFUSED || chains.putIfAbsent(how, each) != null) {
        throw new BraidException(
            "chains are shown by their first tuning that is not unfused, which must differ, but %s has `%s`; change it, for example its priority"
                .formatted(each, how));
      }
    }
    if (shown(reference).method() != Method.UNFUSED || chains.isEmpty()) {
      throw new BraidException(
          "a comparison is of an unfused chain with 1 or more others but %s is with %d; give the unfused one first"
              .formatted(reference, chains.size()));
    }
    return study(
        List.copyOf(chains.keySet()),
        how -> new Candidate(how, chains.getOrDefault(how, reference), false),
        Map.of());
  }

  private static Overlap shown(Chain chain) {
    return chain.pipelines().stream()
        .map(Pipeline::overlap)
        .filter(how -> how.method() != Method.UNFUSED)
        .findFirst()
        .orElseGet(Overlap::unfused);
  }

  /// @param build builds the candidate of a tuning
  /// @param also additional columns of the problem
  private Study study(
      List<Overlap> overlaps, Function<Overlap, Candidate> build, Map<String, String> also) {
    long shuffling = orElse(seed, ThreadLocalRandom.current().nextLong());
    long order = group.broadcast(shuffling, ROOT);
    var plan = plan(overlaps.size());
    var progress = progress(overlaps.size(), plan, order);
    var candidates = new ArrayList<Candidate>();
    try (var _ = Progress.reportedElsewhere()) {
      candidates.add(build.apply(Overlap.unfused()));
      for (var overlap : overlaps) {
        candidates.add(build.apply(overlap));
      }
      for (var candidate : candidates) {
        progress.ifPresent(n -> n.verifying(candidates.indexOf(candidate)));
        candidate.chain.verify();
      }
      var study = measure(candidates, plan, order, progress, also);
      progress.ifPresent(n -> n.found(study));
      return study;
    } finally {
      candidates.reversed().forEach(Candidate::close);
    }
  }

  private RoundPlan plan(int configurations) {
    return repeats == null
        ? RoundPlan.within(
            orElse(budget, DEFAULT_BUDGET), configurations, DEFAULT_REPEATS, MAX_REPEATS)
        : RoundPlan.exactly(repeats);
  }

  /// Returns the reporter of progress on rank 0, and empty on the others.
  private Optional<TuningProgress> progress(int configurations, RoundPlan plan, long order) {
    return group.rank() == ROOT
        ? Optional.of(
            new TuningProgress(
                RankContext.current().outbox(),
                "tuner-" + Long.toHexString(order),
                configurations + 1,
                (configurations + 2) * plan.first()))
        : Optional.empty();
  }

  /// @param candidates candidates, the unfused reference first
  private Study measure(
      List<Candidate> candidates,
      RoundPlan plan,
      long order,
      Optional<TuningProgress> progress,
      Map<String, String> also) {
    var entries = new ArrayList<Candidate>();
    entries.add(candidates.getFirst());
    entries.addAll(candidates);
    var rounds = new Rounds(entries, order);
    var slowest = measureAsPlanned(rounds, plan, entries, progress);
    var ofUnfused = readingsOfAllRanks(candidates.getFirst());
    var trials = new ArrayList<Study.Trial>();
    for (int entry = 2; entry < entries.size(); entry++) {
      var candidate = entries.get(entry);
      trials.add(
          new Study.Trial(
              candidate.overlap(), list(slowest[entry]), readingsOfAllRanks(candidate)));
    }
    var study =
        new Study(
            problem(candidates.getFirst(), also),
            group.size(),
            order,
            list(slowest[0]),
            list(slowest[1]),
            trials,
            ofUnfused);
    return Study.fromJson(group.broadcast(study.toJson(), ROOT));
  }

  /// Measures rounds until rank 0 decides to stop.
  ///
  /// @return times of the slowest rank: one row per entry, one column per round
  private long[][] measureAsPlanned(
      Rounds rounds, RoundPlan plan, List<Candidate> entries, Optional<TuningProgress> progress) {
    long startNanos = System.nanoTime();
    long more = group.broadcast(plan.first(), ROOT);
    long[][] slowest;
    do {
      rounds.measure(
          (int) more,
          e -> progress.ifPresent(n -> n.measuring(entries.get(e).overlap().toString())));
      slowest = slowestOfAllRanks(rounds.nanos());
      long decided = group.rank() == ROOT ? plan.more(slowest, System.nanoTime() - startNanos) : 0;
      more = group.broadcast(decided, ROOT);
      int all = entries.size() * (slowest[0].length + (int) more);
      progress.ifPresent(n -> n.expecting(all));
    } while (more > 0);
    return slowest;
  }

  /// Problem, ranks, backend, link and memory, as columns: a configuration without the tuning.
  private SequencedMap<String, String> problem(Candidate candidate, Map<String, String> also) {
    var columns = new LinkedHashMap<>(candidate.chain.problem());
    columns.putAll(also);
    // Studies of earlier versions have no such column; all of them were timed one by one.
    if (form() != Timing.LATENCY) {
      columns.put("timing", form().toString());
    }
    return columns;
  }

  private long[][] slowestOfAllRanks(long[][] mine) {
    int rounds = mine[0].length;
    var bytes = ByteBuffer.allocate(mine.length * rounds * Long.BYTES);
    for (var row : mine) {
      bytes.asLongBuffer().put(row);
      bytes.position(bytes.position() + rounds * Long.BYTES);
    }
    var ofRanks =
        group.gather(bytes.array()).stream().map(b -> ByteBuffer.wrap(b).asLongBuffer()).toList();
    var slowest = new long[mine.length][rounds];
    for (int row = 0; row < mine.length; row++) {
      for (int round = 0; round < rounds; round++) {
        int at = row * rounds + round;
        slowest[row][round] = ofRanks.stream().mapToLong(b -> b.get(at)).max().orElseThrow();
      }
    }
    return slowest;
  }

  private static List<Long> list(long[] nanos) {
    return Arrays.stream(nanos).boxed().toList();
  }

  /// Returns the readings of all ranks, in the order of measurement.
  private List<Reading> readingsOfAllRanks(Candidate candidate) {
    return Reading.together(
        group.gather(ReadingsJson.write(candidate.readings)).stream()
            .map(ReadingsJson::read)
            .toList());
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

  private final class Candidate implements Rounds.Candidate, AutoCloseable {
    private final Overlap overlap;
    private final Chain chain;
    private final boolean owned;
    private final List<Reading> readings = new ArrayList<>();

    /// @param owned true if this candidate closes the chain
    Candidate(Overlap overlap, Chain chain, boolean owned) {
      this.overlap = overlap;
      this.chain = chain;
      this.owned = owned;
    }

    Overlap overlap() {
      return overlap;
    }

    @Override
    public void close() {
      if (owned) {
        chain.close();
      }
    }

    @Override
    public long nanos() {
      int untimed = orElse(warmup, DEFAULT_WARMUP);
      long nanos = chain.time(untimed + 1, form())[untimed];
      // Before the hardware changes its state.
      readings.add(group.context().backend().reading());
      return nanos;
    }
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
