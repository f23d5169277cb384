package braid.internal.report.statistics;

import java.util.Arrays;
import java.util.Collection;
import java.util.OptionalDouble;

/// Spread of times: the median, and the limits of the slowest and the fastest tenth.
public record Spread(double medianNanos, double p10Nanos, double p90Nanos) {
  public static Spread of(Collection<Long> nanos) {
    var values = nanos.stream().mapToDouble(Long::doubleValue).toArray();
    return new Spread(quantile(values, 0.5), quantile(values, 0.1), quantile(values, 0.9));
  }

  /// Returns the median of some times ÷ that of others; empty if there are no others.
  public static OptionalDouble ratioOfMedians(Collection<Long> nanos, Collection<Long> others) {
    return others.isEmpty()
        ? OptionalDouble.empty()
        : OptionalDouble.of(of(nanos).medianNanos() / of(others).medianNanos());
  }

  /// Returns the quantile by linear interpolation between order statistics: `q` 0 is the minimum, 1
  /// the maximum.
  public static double quantile(double[] values, double q) {
    if (values.length == 0) {
      throw new IllegalArgumentException("a quantile needs at least 1 value but got 0");
    }
    var sorted = values.clone();
    Arrays.sort(sorted);
    double position = q * (sorted.length - 1);
    int below = (int) Math.floor(position);
    int above = Math.min(below + 1, sorted.length - 1);
    return sorted[below] + (position - below) * (sorted[above] - sorted[below]);
  }

  public static double quantile(long[] values, double q) {
    return quantile(Arrays.stream(values).asDoubleStream().toArray(), q);
  }
}
