package braid.internal.resource;

/// Result of comparing numbers with an [Interval].
///
/// @param first index of the first number outside; -1 if there is none
/// @param squares sum of squares of [Bounds#unexplained] over the finite numbers
/// @param allowed sum of squares of [Bounds#reach] over the same numbers
/// @param largest largest difference of a finite number from the expected one as it is stored; NaN
///   if unknown
/// @param largestAt index of that number
public record BoundsResult(
    long first, double squares, double allowed, double largest, long largestAt) {}
