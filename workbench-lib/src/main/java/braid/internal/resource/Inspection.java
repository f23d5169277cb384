package braid.internal.resource;

import braid.model.DType;
import java.lang.foreign.MemorySegment;

/// An access that also examines many numbers in place.
public interface Inspection extends Access {
  Range range(DType dtype, MemorySegment memory);

  /// Returns the first index at which `got` differs from `expected`, rounded to got's type; -1 if
  /// there is none. Numbers agree if they are equal, both NaN, or differ by a finite number of at
  /// most `atol` + `rtol` × |expected|.
  long firstDifference(
      DType expectedType,
      MemorySegment expected,
      DType gotType,
      MemorySegment got,
      double atol,
      double rtol);

  /// Copies the absolute values of numbers, in their type.
  void sizes(DType dtype, MemorySegment from, MemorySegment to);

  /// Lowers `low` and raises `high`, both fp32, by the error bound of the fp32 `sizes`. Bounds that
  /// are not finite stay, unless sizes overflow.
  void widen(MemorySegment low, MemorySegment high, MemorySegment sizes, ErrorBound bound);

  /// Compares numbers with their expected bounds, rounded to their type.
  BoundsResult judge(Interval expected, DType gotType, MemorySegment got);
}
