package braid;

import braid.internal.report.statistics.Spread;
import braid.model.AttentionSpec;
import braid.model.GemmSpec;
import braid.model.Problem;
import braid.model.Span;
import braid.model.Stage;
import braid.model.Timing;
import braid.model.Tuning;
import braid.natives.kernels.Drawn;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Pipelines that a calibration measures in passes. A time is the lower quartile of all passes:
/// other load adds time to some, and a processor is faster than usual in a few. Within a pass it is
/// the median of some runs on the slowest rank, because an iteration lasts as long as the slowest.
final class CalibrationCases {
  /// Pipelines whose memory exists at once.
  private static final int BATCH = 20;

  /// Runs of each pipeline in a pass.
  private static final int RUNS = 5;

  /// Time that a GPU computes without a rest before its rate counts. Its clock falls to what the
  /// power limit allows within it.
  private static final long SETTLING_NANOS = TimeUnit.MILLISECONDS.toNanos(25);

  /// Iterations in flight of the shortest pipelines.
  private static final int MOST_IN_FLIGHT = 200;

  /// Simulated iterations.
  private static final int SIMULATED = 3;

  /// Parts of an iteration that are measured.
  enum Part {
    MULTIPLYING,
    PREPARING,
    ATTENDING,
    COPYING,
    REDUCING,
    COPYING_LOCALLY,
    ENQUEUING,
    ITERATION;

    private boolean contains(Span span) {
      return switch (this) {
        case MULTIPLYING -> span.stage() == Stage.GEMM && span.flops() > 0;
        case PREPARING -> span.stage() == Stage.GEMM && span.flops() == 0;
        case ATTENDING -> span.stage() == Stage.ATTENTION;
        case COPYING -> span.stage() == Stage.COPY;
        case REDUCING -> span.stage() == Stage.REDUCE;
        case COPYING_LOCALLY -> span.stage() == Stage.LOCAL;
        case ENQUEUING, ITERATION -> false;
      };
    }

    /// Returns whether this part's time depends on the clock that a GPU keeps under load.
    private boolean computes() {
      return this == MULTIPLYING || this == ATTENDING;
    }

    /// Returns the time of this part's spans.
    long nanos(List<Span> spans) {
      return spans.stream().filter(this::contains).mapToLong(Span::nanos).sum();
    }
  }

  /// A problem and its tuning.
  ///
  /// @param timed number of iterations that are timed, besides the spans
  record Case(Problem problem, Tuning tuning, int timed) {
    Case(Problem problem, Tuning tuning) {
      this(problem, tuning, 0);
    }

    Schedule schedule(int ranks) {
      return Schedule.of(problem, tuning, ranks);
    }
  }

  private static final int ROOT = 0;

  private final ProcessGroup group;
  private final Map<Case, Map<Part, List<Double>>> times = new HashMap<>();
  private int subsets;

  CalibrationCases(ProcessGroup group) {
    this.group = group;
  }

  /// Returns the time of a part per iteration; not a number if it was not measured.
  double nanos(Case given, Part part) {
    return ofPasses(times.getOrDefault(given, Map.of()).getOrDefault(part, List.of()));
  }

  /// Returns the simulated time of a part of an iteration on rank 0.
  double simulated(Machine described, Case given, Part part) {
    var schedule = given.schedule(group.size());
    return switch (part) {
      case ENQUEUING -> (double) described.launchNanos(schedule, 0);
      case ITERATION -> schedule.simulate(described, SIMULATED).summary().medianNanos();
      default -> (double) part.nanos(schedule.simulate(described, 1).profiles().getFirst().spans());
    };
  }

  /// Returns the time that counts among those of all passes.
  static double ofPasses(List<Double> nanos) {
    return nanos.isEmpty()
        ? Double.NaN
        : Spread.quantile(nanos.stream().mapToDouble(Double::doubleValue).toArray(), 0.25);
  }

  /// Returns the cases in parts, whose pipelines exist at once.
  static List<List<Case>> batches(SequencedSet<Case> cases) {
    var all = List.copyOf(cases);
    return IntStream.range(0, Math.ceilDiv(all.size(), BATCH))
        .mapToObj(part -> all.subList(part * BATCH, Math.min(all.size(), (part + 1) * BATCH)))
        .toList();
  }

  /// Measures the cases of a batch once. The pipelines have a group of their own, whose end frees
  /// their memory.
  void measure(List<Case> batch) {
    var mine = ByteBuffer.allocate(batch.size() * Part.values().length * Double.BYTES);
    try (var own = group.subset("calibration-" + subsets++, members())) {
      for (var each : batch) {
        try (var pipeline = build(own, each)) {
          measure(pipeline, each.timed(), mine);
        }
      }
    }
    var slowest = new double[mine.capacity() / Double.BYTES];
    for (var each : group.gather(mine.array())) {
      var others = ByteBuffer.wrap(each).asDoubleBuffer();
      for (int i = 0; i < slowest.length; i++) {
        slowest[i] = Math.max(slowest[i], others.get(i));
      }
    }
    var numbers = DoubleBuffer.wrap(slowest);
    for (var each : batch) {
      var parts = times.computeIfAbsent(each, _ -> new EnumMap<>(Part.class));
      for (var part : Part.values()) {
        parts.computeIfAbsent(part, _ -> new ArrayList<>()).add(numbers.get());
      }
    }
  }

  private int[] members() {
    return IntStream.range(0, group.size()).toArray();
  }

  /// Adds this rank's times, in the order of the parts.
  private void measure(Pipeline pipeline, int timed, ByteBuffer mine) {
    var spans = spans(pipeline);
    for (var part : Part.values()) {
      mine.putDouble(
          switch (part) {
            case ENQUEUING -> timed > 0 ? median(pipeline.timeEnqueuing(timed)) : 0;
            case ITERATION -> timed > 0 ? median(pipeline.time(timed, Timing.LATENCY)) : 0;
            default -> {
              double alone = median(spans.stream().mapToLong(part::nanos).toArray());
              yield group.onGpu() && part.computes() ? settled(pipeline, part, alone) : alone;
            }
          });
    }
  }

  /// Returns a part's time per iteration while iterations are in flight: of the second half of
  /// them. Rank 0 decides how many, and that none run if the pipelines do not have the part.
  ///
  /// @param alone its time in an iteration at a time
  private double settled(Pipeline pipeline, Part part, double alone) {
    long wanted = alone > 0 ? settlingRuns(alone) : 0;
    int runs = (int) group.broadcast(wanted, ROOT);
    if (runs == 0) {
      return alone;
    }
    var spans =
        recorded(pipeline, () -> pipeline.time(runs, Timing.BACK_TO_BACK))
            .filter(part::contains)
            .sorted(Comparator.comparingLong(Span::startNanos))
            .toList();
    int count = spans.size() / runs;
    return median(
        IntStream.range(runs / 2, runs)
            .mapToLong(run -> part.nanos(spans.subList(run * count, (run + 1) * count)))
            .toArray());
  }

  /// Returns how many iterations a GPU runs in flight; its clock has settled after half of them.
  ///
  /// @param alone time of an iteration at a time, or of the part that counts
  static int settlingRuns(double alone) {
    return Math.clamp((long) (2 * SETTLING_NANOS / alone), 2, MOST_IN_FLIGHT);
  }

  private static double median(long... nanos) {
    return Spread.quantile(nanos, 0.5);
  }

  /// Builds a pipeline of real numbers and runs it once. A GPU multiplies integers faster.
  static Pipeline build(ProcessGroup own, Case given) {
    var builder = Pipeline.on(own);
    switch (given.problem()) {
      case GemmSpec gemm -> {
        builder.gemm(gemm);
        if (gemm.dtype().isFp8()) {
          builder.scales(1, 1);
        }
      }
      case AttentionSpec attention -> builder.attention(attention);
      default -> throw new IllegalArgumentException("not measured: " + given);
    }
    var pipeline = builder.overlap(given.tuning()).build();
    pipeline.draw(Drawn.REALS);
    pipeline.run();
    return pipeline;
  }

  /// Returns the spans of each run.
  private List<List<Span>> spans(Pipeline pipeline) {
    return List.copyOf(
        recorded(pipeline, () -> IntStream.range(0, RUNS).forEach(pipeline::run))
            .collect(Collectors.groupingBy(Span::iteration))
            .values());
  }

  private Stream<Span> recorded(Pipeline pipeline, Runnable iterations) {
    var streams = pipeline.streams();
    group.barrier();
    long origin = System.nanoTime();
    streams.forEach(stream -> stream.record(origin));
    iterations.run();
    return streams.stream().flatMap(stream -> stream.recorded().stream());
  }
}
