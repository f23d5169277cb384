package braid.internal.resource;

/// How numbers lie in an [Interval].
///
/// @param first the first one that lies outside; -1 where none does
/// @param squares the sum of squares of what [Bounds#unexplained] is of each, of finite ones
/// @param allowed the sum of squares of how far the interval reaches, of the same
public record BoundsResult(long first, double squares, double allowed) {}
