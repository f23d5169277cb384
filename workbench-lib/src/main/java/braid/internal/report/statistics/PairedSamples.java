package braid.internal.report.statistics;

import braid.model.Estimate;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/// Relative difference of two configurations that were timed side by side, once each per round.
/// Times are compared within a round, so effects that slow a whole round cancel. The estimate is
/// the Hodges–Lehmann one, its interval comes from the signed-rank test.
///
/// Rounds are measured in shuffled order. If the two are equal, swapping them in a round is
/// therefore equally likely, which is all that the test assumes: drift, bursts and outliers widen
/// an interval, but do not falsify it.
public final class PairedSamples {
  /// Lower tails by number of values.
  private static final Map<Integer, double[]> LOWER_TAILS = new ConcurrentHashMap<>();

  private PairedSamples() {}

  /// Returns the share by which `times` are longer than `base`, negative if they are shorter. With
  /// too few rounds the interval is the whole range, and the estimate states its actual confidence.
  public static Estimate excess(double[] base, double[] times, double confidence) {
    var logs = new double[times.length];
    for (int round = 0; round < logs.length; round++) {
      logs[round] = Math.log(times[round]) - Math.log(base[round]);
    }
    var difference = centre(TwoSamples.condensed(logs), confidence);
    return new Estimate(
        Math.expm1(difference.value()),
        Math.expm1(difference.low()),
        Math.expm1(difference.high()),
        difference.confidence());
  }

  /// Returns the highest confidence that an interval of that number of rounds can have.
  public static double mostConfidence(int rounds) {
    return 1 - Math.pow(2, 1 - Math.min(rounds, TwoSamples.MOST));
  }

  /// Returns the median of the means of all pairs of values, including each value with itself.
  static Estimate centre(double[] values, double confidence) {
    int count = values.length;
    var means = new double[count * (count + 1) / 2];
    int index = 0;
    for (int i = 0; i < count; i++) {
      for (int j = i; j < count; j++) {
        means[index++] = (values[i] + values[j]) / 2;
      }
    }
    Arrays.sort(means);
    var tail = LOWER_TAILS.computeIfAbsent(count, PairedSamples::lowerTail);
    int outer = 0;
    while (outer + 1 < means.length / 2 && 1 - 2 * tail[outer + 1] >= confidence) {
      outer++;
    }
    return new Estimate(
        Spread.quantile(means, 0.5),
        means[outer],
        means[means.length - 1 - outer],
        Math.max(0, 1 - 2 * tail[outer]));
  }

  /// Returns the probability of a sum of ranks of at most `w` if every rank counts with probability
  /// one half: the sets of ranks with that sum are the coefficients of the product of 1 + x^rank.
  private static double[] lowerTail(int count) {
    var share = new double[count * (count + 1) / 2 + 1];
    share[0] = 1;
    for (int rank = 1; rank <= count; rank++) {
      for (int sum = share.length - 1; sum >= 0; sum--) {
        share[sum] = (share[sum] + (sum >= rank ? share[sum - rank] : 0)) / 2;
      }
    }
    for (int sum = 1; sum < share.length; sum++) {
      share[sum] += share[sum - 1];
    }
    return share;
  }
}
