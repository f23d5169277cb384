package braid;

import braid.internal.backend.Stream;
import braid.internal.pipeline.AllGatherGemm;
import braid.internal.pipeline.ClockAlignment;
import braid.internal.pipeline.Reference;
import braid.internal.pipeline.Schedule;
import braid.internal.pipeline.Tolerance;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;

/// A problem and a way to solve it, set up and ready to run as often as wanted:
///
/// ```java
/// try (var pipe = Pipeline.on(group).gemm(spec).overlap(how).build()) {
///   pipe.verify();
///   var profile = pipe.profile(50);
/// }
/// ```
///
/// For an all-gather→GEMM it computes on every rank what this does, whatever the overlap:
///
/// ```java
/// group.barrier();                                          // all inputs are written
/// for (int rank = 0; rank < group.size(); rank++) {         // all-gather
///   wholeInput.rows(of(rank)).copyFrom(shard.on(rank).rows(0, lengthOf(rank)).toFloats());
/// }
/// output = wholeInput.times(weight);                        // GEMM
/// ```
///
/// Input and weight are filled with small integers when it is built, so that it can be verified at
/// once; write your own over them if you like. Building, running and measuring are done by all
/// ranks of the group together.
public final class Pipeline implements AutoCloseable {
  private static final long INPUT_SEED = 1;
  private static final long WEIGHT_SEED = 1_000_003;
  private static final int NO_STEP = 0;

  private final ProcessGroup group;
  private final MemoryKind kind;
  private final AllGatherGemm work;
  private final Schedule schedule;
  private int epoch;
  private int step;
  private @Nullable Throwable broken;
  private boolean closed;

  private Pipeline(ProcessGroup group, MemoryKind kind, AllGatherGemm work) {
    this.group = group;
    this.kind = kind;
    this.work = work;
    this.schedule = Schedule.of(work);
    input().fillIntegers(INPUT_SEED + group.rank());
    weight().fillIntegers(WEIGHT_SEED + group.rank());
  }

  /// Begins a pipeline on that group.
  public static Builder on(ProcessGroup group) {
    group.checkMember();
    return new Builder(group);
  }

  /// Collects what a pipeline is made of; each thing is said at most once.
  public static final class Builder {
    private final ProcessGroup group;
    private @Nullable GemmSpec spec;
    private @Nullable Overlap how;

    private Builder(ProcessGroup group) {
      this.group = group;
    }

    /// The problem; required.
    public Builder gemm(GemmSpec problem) {
      if (spec != null) {
        throw new BraidException("gemm was said already: %s; say it once".formatted(spec));
      }
      spec = problem;
      return this;
    }

    /// The tuning; [Overlap#defaults()] where it is not said.
    public Builder overlap(Overlap tuning) {
      if (how != null) {
        throw new BraidException("overlap was said already: %s; say it once".formatted(how));
      }
      how = tuning;
      return this;
    }

    /// Sets it up, on all ranks of the group together. What fails leaves nothing behind.
    public Pipeline build() {
      if (spec == null) {
        throw new BraidException(
            "gemm is missing; say gemm(GemmSpec.allGatherGemm(m, n, k)) before build()");
      }
      var tuning = how == null ? Overlap.defaults() : how;
      check(spec, tuning, group);
      var context = group.context();
      var backend = context.backend();
      var kind = backend.resolve(context.memory());
      var work = new AllGatherGemm(backend, group.place(), spec, tuning, kind, group::rendezvous);
      var pipeline = new Pipeline(group, kind, work);
      group.own(pipeline);
      return pipeline;
    }

    private static void check(GemmSpec spec, Overlap how, ProcessGroup group) {
      atLeastOneEach("m", "row", spec.m(), group);
      atLeastOneEach("n", "column", spec.n(), group);
      int rows = spec.m() / group.size();
      if (how.splits() > rows) {
        throw new BraidException(
            "splits must be 1..%d (rows of the smallest shard) but was %d; try splits(%d)"
                .formatted(rows, how.splits(), rows));
      }
    }

    private static void atLeastOneEach(String name, String what, int value, ProcessGroup group) {
      if (value < group.size()) {
        throw new BraidException(
            "%s must be %d or more (a %s for each rank of group `%s`) but was %d"
                .formatted(name, group.size(), what, group.name(), value));
      }
    }
  }

  public ProcessGroup group() {
    return group;
  }

  public GemmSpec spec() {
    return work.spec;
  }

  public Overlap overlap() {
    return work.how;
  }

  /// This rank's rows of the input. Write them between runs; peers read them during a run.
  public Tensor input() {
    checkOpen();
    return tensor(work.input(), work.rows(group.rank()).length(), spec().k());
  }

  /// This rank's columns of the weight, as `k` rows.
  public Tensor weight() {
    checkOpen();
    return tensor(work.weight(), spec().k(), work.columns.length());
  }

  /// All `m` rows of this rank's columns, as the last run left them.
  public Tensor output() {
    checkOpen();
    return tensor(work.output(), spec().m(), work.columns.length());
  }

  private Tensor tensor(MemorySegment matrix, int rows, int columns) {
    return new Tensor(List.of((long) rows, (long) columns), spec().dtype(), matrix);
  }

  /// One iteration, to its end on this rank; every rank has then read this rank's input.
  public void run() {
    iterate(0);
  }

  /// Runs that often and says how many nanoseconds each iteration took on this rank.
  public long[] time(int iterations) {
    checkIterations("time", iterations);
    group.barrier();
    var nanos = new long[iterations];
    for (int i = 0; i < iterations; i++) {
      long start = System.nanoTime();
      iterate(i);
      nanos[i] = System.nanoTime() - start;
    }
    return nanos;
  }

  /// Runs that often and says what this rank did, span by span, on the clock of the group's rank 0.
  /// The front gathers it too.
  public Profile profile(int iterations) {
    checkIterations("profile", iterations);
    var clock = ClockAlignment.measure(group);
    // The start that all ranks' times are after, as this rank's clock shows it.
    long origin = group.broadcast(System.nanoTime(), 0) + clock.offsetNanos();
    var streams = work.streams();
    streams.forEach(stream -> stream.record(origin));
    var nanos = new ArrayList<Long>();
    var spans = new ArrayList<Span>();
    try {
      for (long each : time(iterations)) {
        nanos.add(each);
      }
    } finally {
      streams.stream().map(Stream::recorded).forEach(spans::addAll);
    }
    spans.sort(Comparator.comparingLong(Span::startNanos));
    var profile = new Profile(group.place(), configuration(), nanos, spans, clock.errorNanos());
    group.context().outbox().publish(profile.display());
    return profile;
  }

  /// The problem, the tuning and what they ran on, as columns of a table.
  SequencedMap<String, String> configuration() {
    var backend = group.context().backend();
    var columns = new LinkedHashMap<>(spec().columns());
    columns.putAll(overlap().columns());
    columns.put("ranks", Integer.toString(group.size()));
    columns.put("backend", backend.name());
    columns.put("link", backend.link());
    columns.put("memory", kind.toString());
    return columns;
  }

  /// Runs once and compares with the unfused reference, on every rank its own part. Where all
  /// inputs are integers whose sums fp32 holds, as those it was built with, every bit must agree;
  /// else the tolerance is that of the type and the depth `k`.
  ///
  /// @throws VerificationFailed on every rank, where any rank's part is wrong
  public void verify() {
    verify((Tolerance) null);
  }

  /// Runs once and compares with the unfused reference: every value must be within `atol` + `rtol`
  /// × |expected|.
  ///
  /// @throws VerificationFailed on every rank, where any rank's part is wrong
  public void verify(double atol, double rtol) {
    verify(new Tolerance(atol, rtol));
  }

  private void verify(@Nullable Tolerance tolerance) {
    // A value that no run writes must not look like one.
    output().fill(Float.NaN);
    tensor(work.gathered(), spec().m(), spec().k()).fill(Float.NaN);
    run();
    var verdict = Reference.compare(work, tolerance);
    // Gathered also because the peers' inputs were read: none may be written before all are done.
    var verdicts = group.gather(verdict.orElse(""));
    for (var each : verdicts) {
      if (!each.isEmpty()) {
        throw new VerificationFailed(each);
      }
    }
  }

  private void iterate(int iteration) {
    checkOpen();
    int current = group.context().waits().epoch();
    if (epoch != current) {
      epoch = current;
      step = NO_STEP;
      broken = null;
    }
    if (broken != null) {
      throw new BraidException(
          "%s broke off before (%s) and its ranks may be at different steps; build it again"
              .formatted(this, broken.getMessage()),
          broken);
    }
    step++;
    try {
      work.streams().forEach(stream -> stream.turn(iteration, step));
      schedule.enqueue();
      work.synchronize(() -> "the end of an iteration of " + this);
    } catch (RuntimeException | Error e) {
      broken = e;
      throw e;
    }
  }

  private static void checkIterations(String call, int iterations) {
    if (iterations < 1) {
      throw new BraidException(
          "%s needs 1 or more iterations but was given %d; try %s(10)"
              .formatted(call, iterations, call));
    }
  }

  private void checkOpen() {
    if (closed) {
      throw new BraidException("%s is closed; build it again".formatted(this));
    }
  }

  /// Frees its streams and its memory. Twice is harmless, and no rank waits for another.
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      group.disown(this);
      work.close();
    }
  }

  @Override
  public String toString() {
    return "pipeline %s, %s, on %s".formatted(spec(), overlap(), group.name());
  }
}
