package braid;

import braid.internal.report.statistics.Spread;
import braid.model.AttentionSpec;
import braid.model.GemmSpec;
import braid.model.Problem;
import braid.model.Span;
import braid.model.Stage;
import braid.model.Timing;
import braid.model.Tuning;
import braid.schedule.Schedule;
import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedSet;
import java.util.function.Predicate;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;

/// Pipelines that a calibration measures in passes, and the lowest times of each: other load only
/// adds time. Within a pass it is the time of the slowest rank, because an iteration lasts as long
/// as the slowest.
final class CalibrationCases {
  /// Pipelines whose memory exists at once.
  private static final int BATCH = 20;

  /// Runs of each pipeline in a pass.
  private static final int RUNS = 3;

  private static final int TIMED_RUNS = 15;

  private final ProcessGroup group;
  private final Map<Case, Times> times = new HashMap<>();
  private int subsets;

  CalibrationCases(ProcessGroup group) {
    this.group = group;
  }

  /// A problem and its tuning.
  ///
  /// @param timed true if its iterations are timed too, and not only its spans
  record Case(Problem problem, Tuning tuning, boolean timed) {
    Case(Problem problem, Tuning tuning) {
      this(problem, tuning, false);
    }

    Schedule schedule(int ranks) {
      return Schedule.of(problem, tuning, ranks);
    }
  }

  /// Lowest times of a case so far, in nanoseconds per iteration.
  static final class Times {
    private final Map<Stage, Double> spans = new EnumMap<>(Stage.class);
    private double preparing = Double.POSITIVE_INFINITY;
    private double enqueuing = Double.POSITIVE_INFINITY;
    private double lasting = Double.POSITIVE_INFINITY;

    /// Reads the times of one pass, and keeps the lower ones.
    private void lower(DoubleBuffer pass, boolean timed) {
      for (var stage : Stage.values()) {
        spans.merge(stage, pass.get(), Math::min);
      }
      preparing = Math.min(preparing, pass.get());
      if (timed) {
        enqueuing = Math.min(enqueuing, pass.get());
        var iterations = new double[TIMED_RUNS];
        pass.get(iterations);
        lasting = Math.min(lasting, Spread.quantile(iterations, 0.5));
      }
    }

    /// Returns the time of a stage's spans; of multiplications without preparing weights.
    double nanos(Stage stage) {
      return spans.getOrDefault(stage, 0.0);
    }

    double preparingNanos() {
      return preparing;
    }

    double enqueuingNanos() {
      return enqueuing;
    }

    /// Returns the time of an iteration.
    double lastingNanos() {
      return lasting;
    }
  }

  Times times(Case given) {
    return times.computeIfAbsent(given, _ -> new Times());
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
    var mine = DoubleStream.builder();
    try (var own = group.subset("calibration-" + subsets++, members())) {
      for (var each : batch) {
        try (var pipeline = build(own, each)) {
          measure(pipeline, each.timed(), mine);
        }
      }
    }
    var slowest = DoubleBuffer.wrap(slowest(mine.build().toArray()));
    batch.forEach(each -> times(each).lower(slowest, each.timed()));
  }

  private int[] members() {
    return IntStream.range(0, group.size()).toArray();
  }

  /// Adds this rank's times, in the order in which [Times#lower] reads them.
  private void measure(Pipeline pipeline, boolean timed, DoubleStream.Builder mine) {
    var spans = spans(pipeline);
    for (var stage : Stage.values()) {
      mine.add(nanos(spans, span -> span.stage() == stage && !prepares(span)));
    }
    mine.add(nanos(spans, CalibrationCases::prepares));
    if (timed) {
      mine.add(Spread.quantile(pipeline.timeEnqueuing(TIMED_RUNS), 0.5));
      for (long nanos : pipeline.time(TIMED_RUNS, Timing.LATENCY)) {
        mine.add((double) nanos);
      }
    }
  }

  /// Returns the largest of all ranks' numbers, one by one.
  private double[] slowest(double... mine) {
    var bytes = ByteBuffer.allocate(mine.length * Double.BYTES);
    bytes.asDoubleBuffer().put(mine);
    var slowest = new double[mine.length];
    for (var each : group.gather(bytes.array())) {
      var numbers = ByteBuffer.wrap(each).asDoubleBuffer();
      for (int i = 0; i < slowest.length; i++) {
        slowest[i] = Math.max(slowest[i], numbers.get(i));
      }
    }
    return slowest;
  }

  /// Builds a pipeline and runs it once.
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
    pipeline.run();
    return pipeline;
  }

  private List<Span> spans(Pipeline pipeline) {
    var streams = pipeline.streams();
    group.barrier();
    long origin = System.nanoTime();
    streams.forEach(stream -> stream.record(origin));
    for (int run = 0; run < RUNS; run++) {
      pipeline.run();
    }
    return streams.stream().flatMap(stream -> stream.recorded().stream()).toList();
  }

  private static boolean prepares(Span span) {
    return span.stage() == Stage.GEMM && span.flops() == 0;
  }

  /// Returns the time of the chosen spans per iteration.
  private static double nanos(List<Span> spans, Predicate<Span> chosen) {
    return (double) spans.stream().filter(chosen).mapToLong(Span::nanos).sum() / RUNS;
  }
}
