package braid.natives.kernels;

/// Pseudo-random numbers. Each is a function of the seed and its index, so that any number of
/// threads of a processor or a GPU draw the same ones. Loads nothing of CUDA.
public enum Drawn {
  /// Integers from -3 to 3.
  INTEGERS("fill_integers") {
    @Override
    public float at(long seed, long index) {
      return Integers.at(seed, index);
    }
  },

  /// Numbers of mean 0 and variance 1, nearly normal: the sum of four evenly distributed ones.
  REALS("fill_reals") {
    @Override
    public float at(long seed, long index) {
      long bits = bits(seed, index);
      int sum = 0;
      for (int shift = 0; shift < Long.SIZE; shift += Short.SIZE) {
        sum += (int) (bits >>> shift) & PART;
      }
      return (sum - MEAN) * SCALE;
    }
  };

  private static final long STEP = 0x9E3779B97F4A7C15L;
  private static final long FIRST_MIX = 0xBF58476D1CE4E5B9L;
  private static final long SECOND_MIX = 0x94D049BB133111EBL;

  private static final int PART = 0xFFFF;
  private static final int MEAN = 2 * PART;

  /// √3 ÷ 2^16.
  private static final float SCALE = 0x1.bb67aep-16f;

  private final String kernel;

  Drawn(String kernel) {
    this.kernel = kernel;
  }

  /// Returns the number at an index, before it is rounded to a type.
  public abstract float at(long seed, long index);

  /// Returns the kernel that fills memory with them.
  String kernel() {
    return kernel;
  }

  /// Returns the random word at an index.
  static long bits(long seed, long index) {
    long z = seed + (index + 1) * STEP;
    z = (z ^ (z >>> 30)) * FIRST_MIX;
    z = (z ^ (z >>> 27)) * SECOND_MIX;
    return z ^ (z >>> 31);
  }
}
