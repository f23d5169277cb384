package braid.natives.kernels;

/// Pseudo-random small integers. Each is a function of the seed and its index. Loads nothing of
/// CUDA.
public final class Integers {
  /// Largest absolute value: sums of products are exact in fp32 for any depth in use.
  public static final int LARGEST = 3;

  private Integers() {}

  /// Returns the integer at this index, from -3 to 3.
  public static int at(long seed, long index) {
    long bits = Drawn.bits(seed, index);
    // Upper half as a fraction of 2^32, times the number of integers.
    return (int) (((bits >>> Integer.SIZE) * (2 * LARGEST + 1)) >>> Integer.SIZE) - LARGEST;
  }

  /// Returns the first `count` integers.
  public static float[] first(long seed, int count) {
    var values = new float[count];
    for (int i = 0; i < count; i++) {
      values[i] = at(seed, i);
    }
    return values;
  }
}
