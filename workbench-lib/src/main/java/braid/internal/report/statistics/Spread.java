package braid.internal.report.statistics;

import java.util.Collection;
import java.util.OptionalDouble;

/// How times of one thing lie: the middle one, and where the slowest and the fastest tenth begin.
public record Spread(double medianNanos, double p10Nanos, double p90Nanos) {
  public static Spread of(Collection<Long> nanos) {
    var values = nanos.stream().mapToDouble(Long::doubleValue).toArray();
    return new Spread(
        OrderStatistics.quantile(values, 0.5),
        OrderStatistics.quantile(values, 0.1),
        OrderStatistics.quantile(values, 0.9));
  }

  /// The median of some times ÷ that of others; empty where there are no others.
  public static OptionalDouble ratioOfMedians(Collection<Long> nanos, Collection<Long> others) {
    return others.isEmpty()
        ? OptionalDouble.empty()
        : OptionalDouble.of(of(nanos).medianNanos() / of(others).medianNanos());
  }
}
