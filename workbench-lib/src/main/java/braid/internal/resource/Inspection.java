package braid.internal.resource;

import braid.model.DType;
import java.lang.foreign.MemorySegment;

/// An access that also looks at many numbers at once, where they are.
public interface Inspection extends Access {
  Range range(DType dtype, MemorySegment memory);

  /// The first place where `got` is not what is expected; -1 where all is right. Expected is
  /// rounded to got's type first. Right is what is equal, a NaN where one is expected, or what
  /// differs by a finite number of at most `atol` + `rtol` × |expected|.
  long firstDifference(
      DType expectedType,
      MemorySegment expected,
      DType gotType,
      MemorySegment got,
      double atol,
      double rtol);

  /// Copies the sizes of numbers, in their type.
  void sizes(DType dtype, MemorySegment from, MemorySegment to);

  /// Lowers `low` and raises `high`, both fp32, by what that makes of the fp32 `sizes`. What is not
  /// finite stays, unless sizes overflow.
  void widen(MemorySegment low, MemorySegment high, MemorySegment sizes, ErrorBound by);

  /// Holds numbers to what is expected of them, rounded to their type.
  BoundsResult judge(Interval expected, DType gotType, MemorySegment got);
}
