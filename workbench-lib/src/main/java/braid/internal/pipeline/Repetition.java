package braid.internal.pipeline;

import braid.internal.resource.Inspection;
import braid.internal.work.Matrix;
import java.util.HashSet;

/// Estimates from samples how often equal products repeat in the sums of a multiplication. Equal
/// products are rounded alike, so their roundings do not average out: a walk of n steps of which
/// only d differ has a standard deviation that is √(n/d) times as large.
final class Repetition {
  /// About as many products as libraries add up in a register before they add to the result.
  private static final int PRODUCTS = 256;

  /// Number of elements of the result whose products are sampled.
  private static final int ELEMENTS = 4;

  private final Inspection access;
  private final Matrix left;
  private final Matrix right;

  private Repetition(Inspection access, Matrix left, Matrix right) {
    this.access = access;
    this.left = left;
    this.right = right;
  }

  /// Returns √(n/d) of the sampled element with the fewest different products; 1 if all differ.
  static double of(Inspection access, Matrix left, Matrix right) {
    var products = new Repetition(access, left, right);
    double most = 1;
    if (left.rows() > 0 && right.columns() > 0) {
      for (int i = 0; i < ELEMENTS; i++) {
        int row = spread(i, ELEMENTS, left.rows());
        int column = spread(ELEMENTS - 1 - i, ELEMENTS, right.columns());
        most = Math.max(most, products.ofElement(row, column));
      }
    }
    return most;
  }

  private double ofElement(int row, int column) {
    int depth = left.columns();
    int count = Math.min(depth, PRODUCTS);
    int added = 0;
    var different = new HashSet<Double>();
    for (int i = 0; i < count; i++) {
      int k = spread(i, count, depth);
      double product = Math.abs((double) at(left, row, k) * at(right, k, column));
      // Adding 0 rounds nothing.
      if (product != 0) {
        added++;
        different.add(product);
      }
    }
    return added == 0 ? 1 : Math.sqrt(added / (double) different.size());
  }

  private float at(Matrix matrix, int row, int column) {
    int stored = matrix.transposed() ? column : row;
    int within = matrix.transposed() ? row : column;
    return access.get(matrix.dtype(), matrix.segment(), stored * matrix.stride() + within);
  }

  /// Returns the index of one of `count` samples spread evenly over `size`.
  private static int spread(int sample, int count, int size) {
    return (int) ((long) sample * size / count);
  }
}
