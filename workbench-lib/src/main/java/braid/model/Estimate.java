package braid.model;

/// A measured value and the interval that holds the true one with the stated confidence (0..1).
/// Intervals of medians are pairs of order statistics, so they need not be symmetric.
public record Estimate(double value, double low, double high, double confidence) {
  public Estimate {
    if (!(low <= value && value <= high)) {
      throw new BraidException(
          "an estimate must lie in its interval but " + value + " is not in " + low + ".." + high);
    }
  }

  /// Returns the estimate of the negative value.
  public Estimate negated() {
    return new Estimate(-value, -high, -low, confidence);
  }

  /// Returns the estimate with another value, and an interval that is widened to contain it.
  public Estimate withValue(double other) {
    return new Estimate(other, Math.min(low, other), Math.max(high, other), confidence);
  }
}
