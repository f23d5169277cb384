package braid.internal.work;

/// Rounding errors of a backend's multiplications of one type.
///
/// @param factor largest relative error of a factor before it is multiplied, including the error of
///   sums kept in less than fp32, spread over both factors
/// @param addition largest error of an addition, relative to the sum
/// @param exactFactor largest integer size that is exact as a factor
/// @param roundsProducts true if a product may be rounded before it is added to an output in 16
///   bits
public record Precision(
    double factor, double addition, double exactFactor, boolean roundsProducts) {
  /// Largest integer size that is exact in an fp32 sum.
  public static final double EXACT_SUM = 1 << 24;

  /// Exact factors, sums in fp32 rounded to nearest.
  public static final Precision FP32 = new Precision(0, 0x1p-24, EXACT_SUM, false);

  /// Exact factors, sums in the tensor cores' fp32: aligned to the largest of a step and truncated.
  public static final Precision TENSOR_CORE = new Precision(0, 0x1p-22, EXACT_SUM, true);

  /// Factors truncated to 10 bits of fraction.
  public static final Precision TF32 = new Precision(0x1p-10, 0x1p-22, 1 << 11, true);

  /// Sums of a step in about 14 bits, added up in fp32 every 128 products: integers up to 8 fill 13
  /// bits with 128 products.
  public static final Precision FP8 = new Precision(0x1p-11, 0x1p-22, 8, true);
}
