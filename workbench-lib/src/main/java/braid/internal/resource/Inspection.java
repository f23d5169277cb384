package braid.internal.resource;

import braid.DType;
import java.lang.foreign.MemorySegment;

/// An access that also looks at many numbers at once, where they are.
public interface Inspection extends Access {
  Range range(DType dtype, MemorySegment memory);

  /// The first place where `got` is not what is expected; -1 where all is right. Expected is
  /// rounded to got's type first. Right is what is equal, or differs by a finite number of at most
  /// `atol` + `rtol` × |expected|; a NaN is never right.
  long firstDifference(
      DType expectedType,
      MemorySegment expected,
      DType gotType,
      MemorySegment got,
      double atol,
      double rtol);
}
