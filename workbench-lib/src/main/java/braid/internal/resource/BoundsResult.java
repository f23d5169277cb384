package braid.internal.resource;

/// Result of comparing numbers with an [Interval].
///
/// @param first index of the first number outside; -1 if there is none
/// @param squares sum of squares of [Bounds#unexplained] over the finite numbers
/// @param allowed sum of squares of [Bounds#reach] over the same numbers
public record BoundsResult(long first, double squares, double allowed) {}
