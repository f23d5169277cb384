package braid.internal.resource;

/// How far numbers may be off by the sizes of what they are sums of: `share` × size + `least`, but
/// not at all up to the size `exact`.
///
/// @param exact negative where no size is
/// @param overflows whether an infinite size comes of numbers that are all finite: then anything
///   may be right
public record ErrorBound(float share, float least, float exact, boolean overflows) {}
