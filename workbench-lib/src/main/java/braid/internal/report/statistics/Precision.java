package braid.internal.report.statistics;

import braid.model.Estimate;
import java.util.List;
import java.util.stream.Stream;

/// Precision of times: half the width of the widest interval, as a share. The intervals are those
/// of each median, with 95% confidence, and those of each saving, which count half: a saving is a
/// quotient of two times.
public record Precision(double share, int rounds) {
  /// Enough to see a difference of 3% between two runs.
  public static final double GOAL = 0.01;

  /// Limit of the estimated number of rounds.
  private static final double MOST_ROUNDS = 1e9;

  /// @param excess excess of each configuration over the reference
  static Precision of(double[] unfused, List<double[]> times, List<Estimate> excess) {
    double ofTimes =
        Stream.concat(Stream.of(unfused), times.stream())
            .map(t -> OrderStatistics.median(t, Ranking.CONFIDENCE))
            .mapToDouble(e -> halfWidth(e) / e.value())
            .max()
            .orElseThrow();
    double ofSavings = excess.stream().mapToDouble(Precision::halfWidth).max().orElse(0);
    return new Precision(Math.max(ofTimes, ofSavings / 2), unfused.length);
  }

  private static double halfWidth(Estimate estimate) {
    return (estimate.high() - estimate.low()) / 2;
  }

  public boolean isEnough() {
    return share <= GOAL;
  }

  /// Returns the approximate total number of rounds that reach the precision: intervals shrink with
  /// the square root of their number.
  public long roundsFor(double wanted) {
    double ratio = share / wanted;
    return (long) Math.ceil(Math.min(MOST_ROUNDS, Math.max(1, ratio * ratio) * rounds));
  }
}
