package braid;

/// Plain loops over matrices that are stored by rows, to compare with.
final class PlainLoops {
  private PlainLoops() {}

  /// The product of `a` (rows × depth) and `b` (depth × columns).
  static float[] times(float[] a, float[] b, int rows, int depth, int columns) {
    var c = new float[rows * columns];
    for (int i = 0; i < rows; i++) {
      for (int d = 0; d < depth; d++) {
        for (int j = 0; j < columns; j++) {
          c[i * columns + j] += a[i * depth + d] * b[d * columns + j];
        }
      }
    }
    return c;
  }

  static float[] transposed(float[] a, int rows, int columns) {
    var t = new float[a.length];
    for (int i = 0; i < rows; i++) {
      for (int j = 0; j < columns; j++) {
        t[j * rows + i] = a[i * columns + j];
      }
    }
    return t;
  }

  static void add(float[] to, float[] more) {
    for (int i = 0; i < to.length; i++) {
      to[i] += more[i];
    }
  }
}
