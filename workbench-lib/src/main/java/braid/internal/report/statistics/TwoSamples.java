package braid.internal.report.statistics;

import braid.model.Estimate;
import java.util.Arrays;
import java.util.List;

/// Relative difference of two configurations that were not timed side by side: without common
/// rounds, every time of one is compared with every time of the other. The estimate is the median
/// of all quotients, its interval that of the rank-sum test: it assumes no distribution, only that
/// the two differ by a factor, and single outliers have little effect.
public final class TwoSamples {
  /// Size to which longer samples are condensed, as medians of neighbors. Consecutive times depend
  /// on each other, and such medians do so less.
  static final int MOST = 50;

  /// Fewest values for which dependence is tested; fewer look dependent by chance too often.
  private static final int FEWEST_THAT_SHOW_DEPENDENCE = 30;

  private TwoSamples() {}

  /// Returns the share by which `times` are longer than `base`, negative if they are shorter. With
  /// too few values the interval is the whole range, and the estimate states its actual confidence.
  public static Estimate excess(double[] base, double[] times, double confidence) {
    var a = condensed(base);
    var b = condensed(times);
    var shifts = new double[a.length * b.length];
    int index = 0;
    for (double x : a) {
      for (double y : b) {
        shifts[index++] = y / x - 1;
      }
    }
    Arrays.sort(shifts);
    var tail = lowerTail(a.length, b.length);
    int outer = 0;
    while (outer + 1 < shifts.length / 2 && 1 - 2 * tail[outer + 1] >= confidence) {
      outer++;
    }
    return new Estimate(
        Spread.quantile(shifts, 0.5),
        shifts[outer],
        shifts[shifts.length - 1 - outer],
        Math.max(0, 1 - 2 * tail[outer]));
  }

  /// Returns the fewest values per sample, of equal size, for an interval of that confidence: the
  /// extreme order has the probability 1 ÷ (ways to choose half of all values).
  public static int leastRounds(double confidence) {
    int rounds = 1;
    for (double extreme = 1.0 / 2; 1 - 2 * extreme < confidence; rounds++) {
      extreme *= (rounds + 1.0) / (2 * (2 * rounds + 1.0));
    }
    return rounds;
  }

  static double[] condensed(double[] values) {
    return condensed(values, MOST);
  }

  /// Returns the values condensed to the number of independent ones if each depends on the previous
  /// one more than chance explains; else the values.
  public static double[] independent(double[] values) {
    double agreement = agreement(values);
    if (values.length < FEWEST_THAT_SHOW_DEPENDENCE || agreement < 2 / Math.sqrt(values.length)) {
      return values;
    }
    double correlation = Math.sin(agreement * Math.PI / 2);
    int worth = (int) (values.length * (1 - correlation) / (1 + correlation));
    return condensed(values, Math.max(1, worth));
  }

  /// Returns the median of each start's values.
  ///
  /// @param starts number of values of each start
  public static double[] ofStarts(double[] values, List<Integer> starts) {
    var medians = new double[starts.size()];
    int from = 0;
    for (int start = 0; start < medians.length; start++) {
      int to = from + starts.get(start);
      medians[start] = Spread.quantile(Arrays.copyOfRange(values, from, to), 0.5);
      from = to;
    }
    return medians;
  }

  /// Returns how much more often neighbors lie on the same side of the median than on different
  /// sides.
  private static double agreement(double[] values) {
    double median = Spread.quantile(values, 0.5);
    double same = 0;
    double sides = 0;
    double before = 0;
    for (double value : values) {
      double side = Math.signum(value - median);
      same += before * side;
      sides += Math.abs(side);
      before = side;
    }
    return sides == 0 ? 0 : same / sides;
  }

  private static double[] condensed(double[] values, int most) {
    if (values.length <= most) {
      return values;
    }
    var medians = new double[most];
    for (int block = 0; block < most; block++) {
      int from = (int) ((long) values.length * block / most);
      int to = (int) ((long) values.length * (block + 1) / most);
      medians[block] = Spread.quantile(Arrays.copyOfRange(values, from, to), 0.5);
    }
    return medians;
  }

  /// Returns the probability that at most `u` of the pairs are in the wrong order if the samples do
  /// not differ: the counts of orders with that number are the coefficients of a Gaussian binomial.
  private static double[] lowerTail(int n, int m) {
    int half = n * m / 2;
    var orders = new double[half + 1];
    orders[0] = 1;
    double all = 1;
    for (int i = 1; i <= m; i++) {
      for (int u = half; u >= n + i; u--) {
        orders[u] -= orders[u - n - i];
      }
      for (int u = i; u <= half; u++) {
        orders[u] += orders[u - i];
      }
      all = all * (n + i) / i;
    }
    double sum = 0;
    for (int u = 0; u <= half; u++) {
      sum += orders[u];
      orders[u] = sum / all;
    }
    return orders;
  }
}
