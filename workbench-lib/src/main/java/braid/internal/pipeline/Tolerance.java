package braid.internal.pipeline;

import braid.BraidException;
import braid.DType;
import java.lang.foreign.MemorySegment;
import java.util.Locale;

/// How far a value may be from the reference: `atol` + `rtol` × |reference|.
public record Tolerance(double atol, double rtol) {
  static final Tolerance EXACT = new Tolerance(0, 0);

  /// Integers up to this size are exact in fp32, in which sums are kept.
  private static final double EXACT_SUM = 1 << 24;

  /// Roundings that two orders of the same sum can differ by, in units of the type.
  private static final double UNITS = 4;

  public Tolerance {
    if (!(atol >= 0) || !(rtol >= 0)) {
      throw new BraidException(
          "atol and rtol must be 0 or more but were %s and %s".formatted(atol, rtol));
    }
  }

  /// What the inputs allow: nothing at all where all are integers and no sum of `depth` products
  /// can leave the integers that fp32 holds; else what the type and the depth make of roundings.
  static Tolerance fitting(DType dtype, int depth, Range left, Range right) {
    double largestSum = depth * left.largest() * right.largest();
    if (!Double.isFinite(largestSum)) {
      return EXACT;
    }
    if (left.integers() && right.integers() && largestSum <= EXACT_SUM) {
      return EXACT;
    }
    return new Tolerance(
        UNITS * DType.FP32.epsilon() * Math.sqrt(depth) * left.largest() * right.largest(),
        UNITS * dtype.epsilon());
  }

  boolean allows(float expected, float got) {
    return expected == got
        || Math.abs((double) expected - got) <= atol + rtol * Math.abs((double) expected);
  }

  /// What values are like.
  record Range(double largest, boolean integers) {
    static Range of(DType dtype, MemorySegment values) {
      double largest = 0;
      boolean integers = true;
      long count = values.byteSize() / dtype.bytes();
      for (long i = 0; i < count; i++) {
        float value = dtype.load(values, i);
        largest = Math.max(largest, Math.abs(value));
        integers &= value == Math.rint(value);
      }
      return new Range(largest, integers);
    }
  }

  @Override
  public String toString() {
    return equals(EXACT)
        ? "exactly"
        : String.format(Locale.ROOT, "within atol=%.3g rtol=%.3g", atol, rtol);
  }
}
