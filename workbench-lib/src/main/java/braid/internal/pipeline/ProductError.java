package braid.internal.pipeline;

import braid.internal.resource.ErrorBound;
import braid.internal.resource.Range;
import braid.internal.work.Precision;

/// How far two multiplications of the same numbers may be apart, element by element, as
/// docs/verification.md derives it.
///
/// @param depth how many products an element is the sum of
/// @param scale what the sums are multiplied by
/// @param integers whether inputs, and what is added to the products, are integers that lose
///   nothing
/// @param overflows whether inputs are finite, so that infinite sizes come of overflows
record ProductError(
    Precision precision, int depth, float scale, boolean integers, boolean overflows) {
  /// How many standard deviations of the model a single value may be off: no random walk of that
  /// many roundings comes there in practice, nor do blocks of correlated ones.
  static final double ELEMENT_CONFIDENCE = 12;

  /// The same for the RMS of very many values, if the products of each differ.
  private static final double RMS_CONFIDENCE = 3;

  /// Roundings beside those of the products' sum: of the scale, of what is added and of the bias.
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

  /// The same where those numbers are added too.
  ProductError and(Range addend) {
    return new ProductError(precision, depth, scale, integers && addend.integers(), overflows);
  }

  /// How many standard deviations the RMS of that many values may be off. A single one is held to
  /// what every value is.
  static double rmsConfidence(long count) {
    return RMS_CONFIDENCE
        + (ELEMENT_CONFIDENCE - RMS_CONFIDENCE) / Math.sqrt((double) Math.max(count, 1));
  }

  /// The largest scaled size whose sums fp32 holds to the last bit; negative where none is.
  double exactSize() {
    return integers ? Precision.EXACT_SUM * Math.min(1.0, scale) : -1;
  }

  /// What is made of the sizes of an element's row and column, multiplied.
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
