package braid.internal.work;

/// A tile of scores in attention on the host: its size, and the weights of its rows. The simulator
/// measures the same code.
public final class AttentionTile {
  /// Rows and keys of a tile: its scores fit into the L2 cache of a core.
  public static final int ROWS = 128;

  public static final int KEYS = 256;

  private static final double LOG_2 = Math.log(2);

  /// The logarithm of 2 in two parts. The first has few bits, so its multiples are exact.
  private static final float LOG_2_HIGH = 355 / 512f;

  private static final float LOG_2_LOW = (float) (LOG_2 - LOG_2_HIGH);

  private AttentionTile() {}

  /// Returns the largest of `least` and the scores `from` to before `to`.
  public static float largest(float[] scores, int from, int to, float least) {
    float largest = least;
    for (int j = from; j < to; j++) {
      largest = Math.max(largest, scores[j]);
    }
    return largest;
  }

  /// Replaces the scores `from` to before `to` by e^(score - `largest`) and returns their sum.
  public static float weigh(float[] scores, int from, int to, float largest) {
    float sum = 0;
    for (int j = from; j < to; j++) {
      float weight = exp(scores[j] - largest);
      scores[j] = weight;
      sum += weight;
    }
    return sum;
  }

  /// Returns eˣ of x ≤ 0 with an error of at most 2 units in the last place, and 0 where that is
  /// below the normal numbers. [Math#exp] takes several times as long, which would be most of the
  /// time of an attention.
  public static float exp(float x) {
    if (x < -87) {
      return 0;
    }
    int power = (int) (x / (float) LOG_2 - 0.5f);
    float rest = x - power * LOG_2_HIGH - power * LOG_2_LOW;
    // The Taylor series: |rest| is at most half of log 2, so the first term left out is below 6e-9.
    float series = 1 / 5040f;
    series = series * rest + 1 / 720f;
    series = series * rest + 1 / 120f;
    series = series * rest + 1 / 24f;
    series = series * rest + 1 / 6f;
    series = series * rest + 1 / 2f;
    series = series * rest * rest + rest + 1;
    return series * Float.intBitsToFloat((power + 127) << 23);
  }
}
