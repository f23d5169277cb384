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
import java.util.Arrays;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
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

  /// Measures all cases once. The pipelines have groups of their own, whose end frees their memory.
  void pass(List<Case> cases) {
    var members = IntStream.range(0, group.size()).toArray();
    for (int from = 0; from < cases.size(); from += BATCH) {
      try (var own = group.subset("calibration-" + subsets++, members)) {
        for (var each : cases.subList(from, Math.min(cases.size(), from + BATCH))) {
          try (var pipeline = build(own, each)) {
            measure(pipeline, each);
          }
        }
      }
    }
  }

  private void measure(Pipeline pipeline, Case given) {
    var measured = times(given);
    var spans = spans(pipeline);
    for (var stage : Stage.values()) {
      double nanos = slowest(spans, span -> span.stage() == stage && !prepares(span));
      measured.spans.merge(stage, nanos, Math::min);
    }
    measured.preparing = Math.min(measured.preparing, slowest(spans, CalibrationCases::prepares));
    if (given.timed()) {
      var enqueuing = pipeline.timeEnqueuing(TIMED_RUNS);
      measured.enqueuing = Math.min(measured.enqueuing, slowest(Spread.quantile(enqueuing, 0.5)));
      measured.lasting = Math.min(measured.lasting, lasting(pipeline));
    }
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

  /// Returns the time of the chosen spans per iteration, of the slowest rank.
  private double slowest(List<Span> spans, Predicate<Span> chosen) {
    return slowest((double) spans.stream().filter(chosen).mapToLong(Span::nanos).sum() / RUNS);
  }

  private double slowest(double nanos) {
    return Arrays.stream(group.gather(nanos)).max().orElseThrow();
  }

  /// Returns the time of an iteration of the slowest rank.
  private double lasting(Pipeline pipeline) {
    var slowest =
        Arrays.stream(pipeline.time(TIMED_RUNS, Timing.LATENCY))
            .mapToDouble(nanos -> slowest((double) nanos))
            .toArray();
    return Spread.quantile(slowest, 0.5);
  }
}
