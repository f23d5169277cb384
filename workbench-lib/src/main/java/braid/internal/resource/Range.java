package braid.internal.resource;

/// What numbers are like.
///
/// @param largest size of any of them; NaN where one is
/// @param integers whether all of them are
public record Range(double largest, boolean integers) {}
