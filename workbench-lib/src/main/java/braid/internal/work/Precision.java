package braid.internal.work;

/// How exactly a backend multiplies numbers of a type.
///
/// @param factor the most that a factor loses, relative to its size, before it is multiplied, and
///   what sums kept in less than fp32 lose, spread over both factors
/// @param addition the most that an addition loses, relative to the sum
/// @param exactFactor integers up to this size lose nothing
public record Precision(double factor, double addition, double exactFactor) {
  /// Integers up to this size are exact in fp32, in which sums are kept.
  public static final double EXACT_SUM = 1 << 24;

  /// Factors as they are, sums in fp32 rounded to nearest.
  public static final Precision FP32 = new Precision(0, 0x1p-24, EXACT_SUM);

  /// Factors as they are, sums in the tensor cores' fp32: aligned to the largest of a step and cut
  /// off.
  public static final Precision TENSOR_CORE = new Precision(0, 0x1p-22, EXACT_SUM);

  /// Factors cut off to 10 bits of fraction.
  public static final Precision TF32 = new Precision(0x1p-10, 0x1p-22, 1 << 11);

  /// Sums of a step in about 14 bits, added up in fp32 every 128 products: integers up to 8 fill 13
  /// bits with 128 products.
  public static final Precision FP8 = new Precision(0x1p-11, 0x1p-22, 8);
}
