package braid.internal.report.statistics;

import braid.model.Estimate;
import java.util.Arrays;

/// Medians with intervals that assume no distribution. Times of overlapped work have long right
/// tails, so a mean with a standard deviation would mislead.
public final class OrderStatistics {
  private OrderStatistics() {}

  /// Returns the median with the narrowest symmetric pair of order statistics that covers the true
  /// median with at least `confidence`. With too few values the interval is the whole range, and
  /// the estimate states its actual confidence.
  public static Estimate median(double[] values, double confidence) {
    var sorted = values.clone();
    Arrays.sort(sorted);
    int outer = 0;
    while (outer + 1 < sorted.length - 1 - outer - 1
        && coverage(sorted.length, outer + 1) >= confidence) {
      outer++;
    }
    return new Estimate(
        Spread.quantile(sorted, 0.5),
        sorted[outer],
        sorted[sorted.length - 1 - outer],
        coverage(sorted.length, outer));
  }

  /// Returns the probability that the true median lies between the values at index `outer` from
  /// each end of `count` sorted ones: each value falls below it with probability one half.
  static double coverage(int count, int outer) {
    double logOfOne = -count * Math.log(2);
    double oneTail = 0;
    for (int k = 0; k <= outer; k++) {
      oneTail += Math.exp(logOfOne);
      logOfOne += Math.log(count - k) - Math.log(k + 1);
    }
    return Math.max(0, 1 - 2 * oneTail);
  }
}
