package braid.internal.resource;

/// Largest error of sums, from the sum of absolute values of their terms (the size): `share` × size
/// + `least`, or 0 up to the size `exact`.
///
/// @param exact largest size without error; negative if there is none
/// @param overflows true if an infinite size may come of finite numbers: then any result may be
///   correct
public record ErrorBound(float share, float least, float exact, boolean overflows) {}
