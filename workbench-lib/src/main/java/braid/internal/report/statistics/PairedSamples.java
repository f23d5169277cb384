package braid.internal.report.statistics;

import braid.model.Estimate;
import braid.model.Spread;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/// How much longer one thing takes than another, where the two were timed side by side, once each
/// in every round. Times are compared within a round, so whatever slows a whole round cancels. The
/// estimate is the Hodges–Lehmann one, its interval that of the signed-rank test.
///
/// Rounds are measured in shuffled order. If the two things are equal, swapping them in a round is
/// therefore as likely as not, which is all that the test assumes: drift, bursts and outliers make
/// an interval wider, not wrong.
public final class PairedSamples {
  /// By the number of values.
  private static final Map<Integer, double[]> LOWER_TAILS = new ConcurrentHashMap<>();

  private PairedSamples() {}

  /// The share by which `times` are longer than `base`, negative where they are shorter. With too
  /// few rounds for that confidence the interval is the whole range, and the estimate states the
  /// confidence that it has.
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

  /// The highest confidence that an interval of that many rounds can have.
  public static double mostConfidence(int rounds) {
    return 1 - Math.pow(2, 1 - Math.min(rounds, TwoSamples.MOST));
  }

  /// The median of the means of all pairs of values, each value with itself among them.
  static Estimate centre(double[] values, double confidence) {
    int count = values.length;
    var means = new double[count * (count + 1) / 2];
    int at = 0;
    for (int i = 0; i < count; i++) {
      for (int j = i; j < count; j++) {
        means[at++] = (values[i] + values[j]) / 2;
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

  /// How likely a sum of ranks of at most `w` is where every rank counts with probability one half:
  /// the sets of ranks with that sum are the coefficients of the product of 1 + x^rank.
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
