package braid.internal.report.statistics;

import braid.model.Estimate;
import braid.model.Spread;
import java.util.Arrays;

/// How much longer one thing takes than another, where the two were not timed side by side: there
/// are no rounds that both shared, so times are compared each with each. The estimate is the median
/// of all quotients, its interval the one of the rank-sum test: it assumes no distribution, only
/// that the two differ by a factor, and one outlier is one of many.
public final class TwoSamples {
  /// Longer samples are condensed to so many medians of neighbours first. Times that were taken one
  /// after the other depend on each other, and such medians do so less.
  static final int MOST = 50;

  /// Fewer values look dependent by chance too often.
  private static final int FEWEST_THAT_SHOW_DEPENDENCE = 30;

  private TwoSamples() {}

  /// The share by which `times` are longer than `base`, negative where they are shorter. With too
  /// few values for that confidence the interval is the whole range, and the estimate states the
  /// confidence that it has.
  public static Estimate excess(double[] base, double[] times, double confidence) {
    var a = condensed(base);
    var b = condensed(times);
    var shifts = new double[a.length * b.length];
    int at = 0;
    for (double x : a) {
      for (double y : b) {
        shifts[at++] = y / x - 1;
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

  /// The fewest values of either, as many of the one as of the other, for an interval of that
  /// confidence: the extreme order of all is one of so many as there are ways to choose half of
  /// them.
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

  /// As many medians of neighbours as there are independent values, if a value depends on the one
  /// before it more than chance explains; else the values.
  public static double[] independent(double[] values) {
    double agreement = agreement(values);
    if (values.length < FEWEST_THAT_SHOW_DEPENDENCE || agreement < 2 / Math.sqrt(values.length)) {
      return values;
    }
    double correlation = Math.sin(agreement * Math.PI / 2);
    int worth = (int) (values.length * (1 - correlation) / (1 + correlation));
    return condensed(values, Math.max(1, worth));
  }

  /// How much more often neighbours lie on the same side of the median than on different ones.
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

  /// How likely at most `u` of the pairs are the wrong way round where nothing differs: the counts
  /// of orders with that many are the coefficients of a Gaussian binomial.
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
