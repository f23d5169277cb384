package braid.internal.pipeline;

import braid.BraidException;
import braid.DType;
import braid.GemmSpec;
import braid.internal.resource.Range;
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

  /// What the inputs allow: nothing at all where all are integers, no sum of products can leave the
  /// integers that fp32 holds, and what ranks send each other is not rounded; else what types,
  /// depth and ranks make of roundings.
  ///
  /// @param largestPartial the largest partial sum that any rank sends; 0 where none is sent
  static Tolerance fitting(
      GemmSpec spec, int ranks, float scale, double largestPartial, Range left, Range right) {
    double largestProduct = left.largest() * right.largest();
    double largestSum = spec.k() * largestProduct;
    if (!Double.isFinite(largestSum)) {
      return EXACT;
    }
    boolean integers = left.integers() && right.integers() && largestSum <= EXACT_SUM;
    boolean sentExactly =
        !spec.pattern().reduces()
            || ranks == 1
            || ranks * largestPartial / scale <= exactIntegers(spec.outputDtype());
    if (integers && isPowerOfTwo(scale) && sentExactly && !spec.has(GemmSpec.Feature.GELU)) {
      return EXACT;
    }
    double typicalSum = Math.sqrt(spec.k()) * largestProduct * scale;
    double sent = sentExactly ? 0 : spec.outputDtype().epsilon() * Math.sqrt(ranks);
    double multiplied = Math.max(DType.FP32.epsilon(), multiplicationEpsilon(spec.dtype()));
    return new Tolerance(
        UNITS * (multiplied + sent) * typicalSum, UNITS * spec.outputDtype().epsilon());
  }

  /// The same for a sum of one number of each rank.
  static Tolerance ofSum(DType dtype, int ranks, double largest, Tolerance ofProducts) {
    if (ofProducts.equals(EXACT) && ranks * largest <= exactIntegers(dtype)) {
      return EXACT;
    }
    return new Tolerance(UNITS * dtype.epsilon() * ranks * largest, UNITS * dtype.epsilon());
  }

  /// TF32 keeps 10 bits of each factor where the hardware has it.
  private static double multiplicationEpsilon(DType dtype) {
    return dtype == DType.TF32 ? dtype.epsilon() : 0;
  }

  private static double exactIntegers(DType dtype) {
    return dtype.isStoredAsFp32() ? EXACT_SUM : 2 / dtype.epsilon();
  }

  private static boolean isPowerOfTwo(float scale) {
    return scale == Math.scalb(1f, Math.getExponent(scale));
  }

  @Override
  public String toString() {
    return equals(EXACT)
        ? "exactly"
        : String.format(Locale.ROOT, "within atol=%.3g rtol=%.3g", atol, rtol);
  }
}
