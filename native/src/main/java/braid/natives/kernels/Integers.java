package braid.natives.kernels;

/// Pseudo-random small integers. Each is a function of the seed and its index, so that any number
/// of threads of a processor or a GPU produce the same ones. Loads nothing of CUDA.
public final class Integers {
  /// Largest absolute value: sums of products are exact in fp32 for any depth in use.
  public static final int LARGEST = 3;

  private static final long STEP = 0x9E3779B97F4A7C15L;
  private static final long FIRST_MIX = 0xBF58476D1CE4E5B9L;
  private static final long SECOND_MIX = 0x94D049BB133111EBL;

  private Integers() {}

  /// Returns the integer at this index, from -3 to 3.
  public static int at(long seed, long index) {
    long z = seed + (index + 1) * STEP;
    z = (z ^ (z >>> 30)) * FIRST_MIX;
    z = (z ^ (z >>> 27)) * SECOND_MIX;
    z ^= z >>> 31;
    // Upper half as a fraction of 2^32, times the number of integers.
    return (int) (((z >>> Integer.SIZE) * (2 * LARGEST + 1)) >>> Integer.SIZE) - LARGEST;
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
