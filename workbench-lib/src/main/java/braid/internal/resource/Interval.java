package braid.internal.resource;

import braid.model.DType;
import java.lang.foreign.MemorySegment;

/// [Bounds] of many numbers of one type: fp32, unless they were rounded before the activation.
///
/// @param activated true if their GELU was stored
/// @param outScale factor by which they, or their GELU, were multiplied when they were stored
public record Interval(
    DType dtype,
    MemorySegment expected,
    MemorySegment low,
    MemorySegment high,
    boolean activated,
    float outScale) {
  /// Bounds of one number.
  public Bounds at(Access access, long index) {
    var bounds =
        new Bounds(
            access.get(dtype, expected, index),
            access.get(dtype, low, index),
            access.get(dtype, high, index));
    return (activated ? bounds.activated() : bounds).scaled(outScale);
  }
}
