package braid.schedule.simulation;

import braid.model.BraidException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/// Multiplication rates of a rank with all its compute units, for every combination of some sizes.
/// Between sizes the time, not the rate, is interpolated linearly in each size: this is exact for a
/// time composed of the operations, of packing each operand and of a fixed cost. Beyond the last
/// size it is extrapolated from the last two; with a single size, time is proportional to the size.
///
/// @param rows numbers of rows of input and output, ascending
/// @param columns numbers of columns of weight and output, ascending
/// @param depths depths (k), ascending
/// @param gflops rates in GFLOPS: by columns, then depths, then rows
public record GemmRates(
    List<Integer> rows, List<Integer> columns, List<Integer> depths, List<Double> gflops) {
  private static final int CORNERS_PER_SIZE = 2;

  public GemmRates {
    rows = ascending("rows", rows);
    columns = ascending("columns", columns);
    depths = ascending("depths", depths);
    gflops = List.copyOf(gflops);
    if (gflops.size() != rows.size() * columns.size() * depths.size()) {
      throw new BraidException(
          "rates of %d x %d x %d sizes must be %d but were %d; give one for each combination"
              .formatted(
                  rows.size(),
                  columns.size(),
                  depths.size(),
                  rows.size() * columns.size() * depths.size(),
                  gflops.size()));
    }
    for (double rate : gflops) {
      if (!(rate > 0) || Double.isInfinite(rate)) {
        throw new BraidException(
            "a rate must be more than 0 GFLOPS but was %s; for example 650000".formatted(rate));
      }
    }
  }

  /// Returns the same rate for all sizes.
  public static GemmRates constant(double gflops) {
    return new GemmRates(List.of(1), List.of(1), List.of(1), List.of(gflops));
  }

  /// Returns all rates multiplied by a factor, in thousandths of a GFLOPS.
  public GemmRates times(double factor) {
    return new GemmRates(
        rows,
        columns,
        depths,
        gflops.stream().map(each -> Math.rint(1e3 * each * factor) / 1e3).toList());
  }

  private static List<Integer> ascending(String name, List<Integer> sizes) {
    for (int i = 0; i < sizes.size(); i++) {
      if (sizes.get(i) <= (i == 0 ? 0 : sizes.get(i - 1))) {
        throw new BraidException(
            "%s must be 1 or more and ascend but were %s; sort them".formatted(name, sizes));
      }
    }
    if (sizes.isEmpty()) {
      throw new BraidException("%s must be 1 or more sizes but were none".formatted(name));
    }
    return List.copyOf(sizes);
  }

  /// Returns the rate of one combination, by the indices of its sizes.
  double gflops(int row, int column, int depth) {
    return gflops.get((column * depths.size() + depth) * rows.size() + row);
  }

  /// Returns the time of `m` × `k` times `k` × `n`.
  public double nanos(double m, double n, double k) {
    var at = List.of(Corner.of(rows, m), Corner.of(columns, n), Corner.of(depths, k));
    double nanos = 0;
    for (int low = 0; low < 1 << at.size(); low++) {
      double weight = 1;
      var place = new ArrayList<Integer>();
      for (int size = 0; size < at.size(); size++) {
        boolean upper = (low >> size) % CORNERS_PER_SIZE == 1;
        var corner = at.get(size);
        weight *= upper ? corner.upperWeight() : corner.lowerWeight();
        place.add(upper ? corner.upper() : corner.lower());
      }
      if (weight != 0) {
        nanos += weight * nanos(place.get(0), place.get(1), place.get(2));
      }
    }
    return Math.max(nanos, 2 * m * n * k / Collections.max(gflops));
  }

  private double nanos(int row, int column, int depth) {
    double flops = 2.0 * rows.get(row) * columns.get(column) * depths.get(depth);
    return flops / gflops(row, column, depth);
  }

  /// Two neighboring sizes and their interpolation weights.
  private record Corner(int lower, int upper, double lowerWeight, double upperWeight) {
    static Corner of(List<Integer> sizes, double size) {
      if (sizes.size() == 1) {
        return new Corner(0, 0, size / sizes.getFirst(), 0);
      }
      int upper = 1;
      while (upper < sizes.size() - 1 && sizes.get(upper) < size) {
        upper++;
      }
      double from = sizes.get(upper - 1);
      double share = (size - from) / (sizes.get(upper) - from);
      return new Corner(upper - 1, upper, 1 - share, share);
    }
  }
}
