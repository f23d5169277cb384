package braid.launcher.bench.report;

import braid.model.Spread;
import java.util.List;

/// A measured quantity: its median, and between what most of the repeats were.
public record Measure(double median, double low, double high, int repeats) {
  /// For a few repeats: all of them.
  public static Measure range(List<Double> values) {
    return between(values, 0, 1);
  }

  /// For many repeats: all but the lowest and highest tenth.
  public static Measure tenths(List<Double> values) {
    return between(values, 0.1, 0.9);
  }

  private static Measure between(List<Double> values, double low, double high) {
    var array = values.stream().mapToDouble(Double::doubleValue).toArray();
    return new Measure(
        Spread.quantile(array, 0.5),
        Spread.quantile(array, low),
        Spread.quantile(array, high),
        array.length);
  }

  /// A number that is what it is: a count, or a ratio of medians.
  public static Measure exactly(double value) {
    return new Measure(value, value, value, 1);
  }
}
