package braid.internal.pipeline;

import braid.internal.resource.ErrorBound;
import braid.internal.resource.Range;
import braid.internal.work.Precision;

/// Bound on the difference between two multiplications of the same numbers, per element; derived in
/// docs/verification.md.
///
/// @param depth number of products that an element sums
/// @param scale factor applied to the sums
/// @param integers true if inputs and addends are integers, whose sums are exact up to [#exactSize]
/// @param overflows true if inputs are finite, so that infinite sizes come from overflows
record ProductError(
    Precision precision, int depth, float scale, boolean integers, boolean overflows) {
  /// Allowed deviation of a single value, in standard deviations of the model. In practice neither
  /// random walks of roundings nor blocks of correlated ones reach it.
  static final double ELEMENT_CONFIDENCE = 12;

  /// Allowed deviation of the RMS of very many values with different products, in standard
  /// deviations.
  private static final double RMS_CONFIDENCE = 3;

  /// Roundings besides those of the sum of products: of the scale, of the accumulated output and of
  /// the bias.
  private static final int MORE_ROUNDINGS = 3;

  static ProductError of(Precision precision, int depth, float scale, Range left, Range right) {
    boolean integers =
        left.integers()
            && right.integers()
            && Math.max(left.largest(), right.largest()) <= precision.exactFactor()
            && isPowerOfTwo(scale);
    return new ProductError(
        precision,
        depth,
        scale,
        integers,
        Double.isFinite(left.largest()) && Double.isFinite(right.largest()));
  }

  /// Returns the bound if numbers of that range are added too.
  ProductError and(Range addend) {
    return new ProductError(precision, depth, scale, integers && addend.integers(), overflows);
  }

  /// Returns the allowed deviation of the RMS of `count` values, in standard deviations; for a
  /// single value that of [#ELEMENT_CONFIDENCE].
  static double rmsConfidence(long count) {
    return RMS_CONFIDENCE
        + (ELEMENT_CONFIDENCE - RMS_CONFIDENCE) / Math.sqrt((double) Math.max(count, 1));
  }

  /// Returns the largest scaled size whose sums are exact in fp32; negative if there is none.
  double exactSize() {
    return integers ? Precision.EXACT_SUM * Math.min(1.0, scale) : -1;
  }

  /// Returns the interval's half-width as a function of the product of an element's row and column
  /// sizes.
  ErrorBound widening(double confidence) {
    double roundings = depth + MORE_ROUNDINGS;
    double sum = precision.addition() * Math.min(2 * roundings, confidence * Math.sqrt(roundings));
    return new ErrorBound(
        (float) (2 * precision.factor() + sum), Float.MIN_NORMAL, (float) exactSize(), overflows);
  }

  private static boolean isPowerOfTwo(float scale) {
    return scale == Math.scalb(1f, Math.getExponent(scale));
  }
}
