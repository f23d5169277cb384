package braid.internal.report.statistics;

import braid.model.Place;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/// Breakdown of one rank's time, as nanoseconds of a mean iteration. A stage's time is that in
/// which at least one of its spans ran. Communication is copying and reducing; a group of one rank
/// has none, even if it copies or adds. Computing is multiplying or attending.
///
/// @param iteration wall time
/// @param either time in which the rank computed, communicated or both
/// @param exposed time in which it communicated and did not compute: exposed communication
/// @param working time in which it did that or moved rank-local bytes
public record RankTimes(
    int rank,
    double iteration,
    Map<Stage, Double> busy,
    double compute,
    double communication,
    double either,
    double exposed,
    double working,
    long bytes,
    long flops) {
  /// Share of an iteration below which a ratio to the possible saving has no meaning.
  public static final double LEAST_SAVABLE = 0.01;

  /// Bound of the rounding error of a sum of means, as a share.
  private static final double ROUNDING = 1e-12;

  /// Returns the mean over all iterations.
  public static RankTimes of(Profile profile) {
    return of(profile.place(), profile.iterationNanos(), profile.spans());
  }

  public static RankTimes of(Profile profile, int iteration) {
    return of(
        profile.place(),
        List.of(profile.iterationNanos().get(iteration)),
        profile.spans().stream().filter(s -> s.iteration() == iteration).toList());
  }

  private static RankTimes of(Place place, List<Long> iterationNanos, List<Span> spans) {
    int iterations = iterationNanos.size();
    var busy = new EnumMap<Stage, Double>(Stage.class);
    for (var stage : Stage.values()) {
      var own = of(spans, stage);
      if (!own.isEmpty()) {
        busy.put(stage, BusyTime.nanos(own) / (double) iterations);
      }
    }
    var compute = of(spans, Stage.GEMM, Stage.ATTENTION);
    boolean alone = place.size() == 1;
    var communication = alone ? List.<Span>of() : of(spans, Stage.COPY, Stage.REDUCE);
    var either = alone ? compute : of(spans, Stage.GEMM, Stage.ATTENTION, Stage.COPY, Stage.REDUCE);
    var working = of(spans, Stage.GEMM, Stage.ATTENTION, Stage.COPY, Stage.REDUCE, Stage.LOCAL);
    return new RankTimes(
        place.rank(),
        iterationNanos.stream().mapToLong(Long::longValue).average().orElseThrow(),
        Collections.unmodifiableMap(busy),
        BusyTime.nanos(compute) / (double) iterations,
        BusyTime.nanos(communication) / (double) iterations,
        BusyTime.nanos(either) / (double) iterations,
        BusyTime.outside(communication, compute) / (double) iterations,
        BusyTime.nanos(working) / (double) iterations,
        communication.stream().mapToLong(Span::bytes).sum() / iterations,
        compute.stream().mapToLong(Span::flops).sum() / iterations);
  }

  private static List<Span> of(List<Span> spans, Stage... stages) {
    var wanted = List.of(stages);
    return spans.stream().filter(s -> wanted.contains(s.stage())).toList();
  }

  /// Returns the name of what the ranks compute: "GEMM", "attention", or "compute" for both.
  public static String compute(List<RankTimes> ranks) {
    boolean attends = ranks.stream().anyMatch(each -> each.busy.containsKey(Stage.ATTENTION));
    boolean multiplies = ranks.stream().anyMatch(each -> each.busy.containsKey(Stage.GEMM));
    return !attends ? "GEMM" : multiplies ? "compute" : "attention";
  }

  /// Returns the time in which the rank computed and communicated at once.
  public double overlapped() {
    return difference(compute + communication, either);
  }

  public double idle() {
    return difference(iteration, working);
  }

  /// Returns the time in which the rank only moved rank-local bytes.
  public double localOnly() {
    return difference(working, either);
  }

  /// Returns the time in which the rank computed and did not communicate.
  public double computeOnly() {
    return difference(either, communication);
  }

  /// Returns the difference of two times, or 0 if it is negative or only their rounding.
  private static double difference(double nanos, double less) {
    double left = nanos - less;
    return left > ROUNDING * nanos ? left : 0;
  }

  /// Returns (T_compute + T_comm − T_iteration) ÷ min(T_compute, T_comm), the first two as timed in
  /// `alone`: pass this rank's times of the unfused run to charge overlap for slowing both down, or
  /// `this`. NaN if less than [#LEAST_SAVABLE] of an iteration could be saved.
  public double savedToSavable(RankTimes alone) {
    double savable = Math.min(alone.compute, alone.communication);
    return savable < LEAST_SAVABLE * iteration
        ? Double.NaN
        : (alone.compute + alone.communication - iteration) / savable;
  }

  /// Returns the share of communication that ran beside computing; NaN without communication.
  public double overlappedToCommunication() {
    return communication > 0 ? overlapped() / communication : Double.NaN;
  }
}
