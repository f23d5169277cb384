package braid.internal.resource;

/// What numbers are like.
///
/// @param largest size of any of them; not finite where one is not
/// @param integers whether all of them are
public record Range(double largest, boolean integers) {}
