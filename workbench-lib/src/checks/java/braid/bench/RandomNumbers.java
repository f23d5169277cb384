package braid.bench;

import braid.TensorView;
import java.util.Random;

/// Random numbers of unit variance: a GPU that multiplies small integers needs less power and so
/// runs faster.
final class RandomNumbers {
  private static final int BLOCK = 1 << 20;

  private RandomNumbers() {}

  /// Fills a tensor. The numbers repeat, since drawing all takes minutes.
  static void fill(TensorView tensor, long seed) {
    long rows = tensor.shape().getFirst();
    if (rows == 0 || tensor.elements() == 0) {
      return;
    }
    int columns = Math.toIntExact(tensor.elements() / rows);
    var random = new Random(seed);
    int count = Math.toIntExact(Math.min(rows, Math.max(1, BLOCK / columns)));
    var block = new float[count * columns];
    for (int i = 0; i < block.length; i++) {
      block[i] = (float) random.nextGaussian();
    }
    tensor.rows(0, count).copyFrom(block);
    // Twice as many rows each time, within the device.
    for (long row = count; row < rows; row *= 2) {
      long here = Math.min(row, rows - row);
      tensor.rows(row, here).copyFrom(tensor.rows(0, here));
    }
  }
}
