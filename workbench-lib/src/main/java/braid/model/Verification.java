package braid.model;

import java.util.Locale;

/// Result of a verification that found no wrong value: what was compared on all ranks.
///
/// @param values number of compared values
/// @param exact number of those that must equal the reference in every bit
/// @param largestDifference largest difference of the others from the reference; NaN if the backend
///   only tests whether each is within its bound
/// @param allowedDifference bound of the value with the largest difference
/// @param ranks number of ranks whose values were compared
public record Verification(
    long values, long exact, double largestDifference, double allowedDifference, int ranks) {
  /// Returns both results as one.
  public Verification and(Verification other) {
    var larger = isLarger(other) ? other : this;
    return new Verification(
        values + other.values,
        exact + other.exact,
        larger.largestDifference,
        larger.allowedDifference,
        Math.max(ranks, other.ranks));
  }

  private boolean isLarger(Verification other) {
    return values == exact
        || (other.values > other.exact
            && (Double.isNaN(other.largestDifference)
                || other.largestDifference > largestDifference));
  }

  @Override
  public String toString() {
    long rounded = values - exact;
    var text = String.format(Locale.ROOT, "verified %,d values of %d ranks", values, ranks);
    if (rounded == 0) {
      return text + ": each equals the reference exactly";
    }
    if (exact > 0) {
      text += String.format(Locale.ROOT, ", %,d of them exactly", exact);
    }
    return Double.isNaN(largestDifference)
        ? text + ": each is within its bound"
        : String.format(
            Locale.ROOT,
            "%s: the largest difference is %.3g, where %.3g is allowed",
            text,
            largestDifference,
            allowedDifference);
  }
}
