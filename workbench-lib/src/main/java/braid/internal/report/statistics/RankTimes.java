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
/// has none, even if it copies or adds.
///
/// @param iteration wall time
/// @param either time in which the rank multiplied, communicated or both
/// @param exposed time in which it communicated and did not multiply: exposed communication
/// @param working time in which it did that or moved rank-local bytes
public record RankTimes(
    int rank,
    double iteration,
    Map<Stage, Double> busy,
    double gemm,
    double communication,
    double either,
    double exposed,
    double working,
    long bytes,
    long flops) {

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
    var gemm = of(spans, Stage.GEMM);
    boolean alone = place.size() == 1;
    var communication = alone ? List.<Span>of() : of(spans, Stage.COPY, Stage.REDUCE);
    var either = alone ? gemm : of(spans, Stage.GEMM, Stage.COPY, Stage.REDUCE);
    var working = of(spans, Stage.GEMM, Stage.COPY, Stage.REDUCE, Stage.LOCAL);
    return new RankTimes(
        place.rank(),
        iterationNanos.stream().mapToLong(Long::longValue).average().orElseThrow(),
        Collections.unmodifiableMap(busy),
        BusyTime.nanos(gemm) / (double) iterations,
        BusyTime.nanos(communication) / (double) iterations,
        BusyTime.nanos(either) / (double) iterations,
        BusyTime.outside(communication, gemm) / (double) iterations,
        BusyTime.nanos(working) / (double) iterations,
        communication.stream().mapToLong(Span::bytes).sum() / iterations,
        gemm.stream().mapToLong(Span::flops).sum() / iterations);
  }

  private static List<Span> of(List<Span> spans, Stage... stages) {
    var wanted = List.of(stages);
    return spans.stream().filter(s -> wanted.contains(s.stage())).toList();
  }

  /// Returns the time in which the rank multiplied and communicated at once.
  public double overlapped() {
    return Math.max(0, gemm + communication - either);
  }

  public double idle() {
    return Math.max(0, iteration - working);
  }

  /// Returns the time in which the rank only moved rank-local bytes.
  public double localOnly() {
    return working - either;
  }

  /// Returns (T_gemm + T_comm − T_overlapped) ÷ min(T_gemm, T_comm), the first two as timed in
  /// `alone`: pass this rank's times of the unfused run to charge overlap for slowing both down, or
  /// `this`. NaN if there was nothing to overlap.
  public double savedToSavable(RankTimes alone) {
    return (alone.gemm + alone.communication - iteration)
        / positive(Math.min(alone.gemm, alone.communication));
  }

  /// Returns the share of communication that ran beside a GEMM; NaN without communication.
  public double overlappedToCommunication() {
    return overlapped() / positive(communication);
  }

  private static double positive(double nanos) {
    return nanos > 0 ? nanos : Double.NaN;
  }
}
