package braid.launcher.bench;

import braid.internal.report.statistics.Spread;
import java.util.List;

/// A measured quantity: its median, and the range of most repeats.
public record Measure(double median, double low, double high) {
  /// Returns the full range of a few repeats.
  public static Measure range(List<Double> values) {
    return between(values, 0, 1);
  }

  /// Returns the range between the 10th and the 90th percentile of many repeats.
  public static Measure tenths(List<Double> values) {
    return between(values, 0.1, 0.9);
  }

  private static Measure between(List<Double> values, double low, double high) {
    var array = values.stream().mapToDouble(Double::doubleValue).toArray();
    return new Measure(
        Spread.quantile(array, 0.5), Spread.quantile(array, low), Spread.quantile(array, high));
  }
}
