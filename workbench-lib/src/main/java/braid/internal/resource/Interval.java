package braid.internal.resource;

import braid.model.DType;
import java.lang.foreign.MemorySegment;

/// [Bounds] of many numbers, all of one type: fp32 but where they were rounded before the
/// activation.
///
/// @param activated whether GELU of them is what was stored
/// @param outScale by which they, or their GELU, were multiplied when they were stored
public record Interval(
    DType dtype,
    MemorySegment expected,
    MemorySegment low,
    MemorySegment high,
    boolean activated,
    float outScale) {
  /// Those of one of them.
  public Bounds at(Access access, long index) {
    var bounds =
        new Bounds(
            access.get(dtype, expected, index),
            access.get(dtype, low, index),
            access.get(dtype, high, index));
    return (activated ? bounds.activated() : bounds).scaled(outScale);
  }
}
