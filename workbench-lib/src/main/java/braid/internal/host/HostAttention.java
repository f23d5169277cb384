package braid.internal.host;

import braid.internal.work.AttentionBlock;
import braid.internal.work.AttentionMerge;
import braid.internal.work.AttentionTile;
import braid.internal.work.Matrix;
import braid.model.DType;
import braid.natives.Blas;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/// Attention of one stream: block by block with running statistics, so that scores of all keys are
/// never in memory together. OpenBLAS multiplies, in fp32; narrow types are widened. Each head
/// takes tiles of rows × keys:
///
/// ```
/// scores = scale · query · keyᵀ          positions that a row does not see are left out
/// m'     = max(m, max of the row)
/// sum    = sum · e^(m - m') + Σ e^(score - m')
/// output = output · e^(m - m') + e^(score - m') · value
/// ```
///
/// In the end the output is divided by the sum, and the LSE is m + log(sum). A continued block
/// begins with m = LSE and sum = 1.
final class HostAttention implements AutoCloseable {
  private static final int TILE_ROWS = AttentionTile.ROWS;
  private static final int TILE_KEYS = AttentionTile.KEYS;

  private final int threads;
  private final HostScratch scratch = new HostScratch();
  // Allocated by the first block: most streams never attend.
  private float[] scores = {};
  private float[] most = {};
  private float[] sums = {};
  private float[] outputs = {};
  private float[] products = {};

  HostAttention(int threads) {
    this.threads = threads;
  }

  void attend(AttentionBlock block) {
    if (block.query().rows() == 0) {
      return;
    }
    HostGemm.limitThreads(threads);
    int headSize = block.spec().headSize();
    if (outputs.length < TILE_ROWS * headSize) {
      scores = new float[TILE_ROWS * TILE_KEYS];
      most = new float[TILE_ROWS];
      sums = new float[TILE_ROWS];
      outputs = new float[TILE_ROWS * headSize];
      products = new float[TILE_ROWS * headSize];
    }
    long scoreBytes = (long) scores.length * Float.BYTES;
    long productBytes = (long) products.length * Float.BYTES;
    scratch.begin(
        scoreBytes
            + HostScratch.roundUp(productBytes)
            + wideBytes(block.query(), block.key(), block.value()));
    var tile = new Tile(block, scoreBytes, productBytes);
    for (int head = 0; head < block.spec().heads(); head++) {
      for (var run : block.queries().runs()) {
        int end = (int) run.endRow();
        for (int row = (int) run.row(); row < end; row += TILE_ROWS) {
          tile.attend(head, row, Math.min(TILE_ROWS, end - row));
        }
      }
    }
  }

  static long wideBytes(Matrix... matrices) {
    return Arrays.stream(matrices)
        .filter(each -> !each.dtype().isStoredAsFp32())
        .mapToLong(each -> HostScratch.roundUp((long) each.rows() * each.columns() * Float.BYTES))
        .sum();
  }

  private Matrix wide(Matrix matrix) {
    return wide(matrix, scratch);
  }

  /// Returns a matrix in fp32, in scratch memory if it is stored in a narrower type.
  static Matrix wide(Matrix matrix, HostScratch scratch) {
    return matrix.dtype().isStoredAsFp32()
        ? matrix
        : Numbers.widen(matrix, scratch.take(wideBytes(matrix)));
  }

  /// The tiles of one block, in fp32.
  private final class Tile {
    private final AttentionBlock block;
    private final Matrix query;
    private final Matrix key;
    private final Matrix value;
    private final MemorySegment scoreMemory;
    private final MemorySegment productMemory;
    private final int headSize;

    Tile(AttentionBlock block, long scoreBytes, long productBytes) {
      this.block = block;
      query = wide(block.query());
      key = wide(block.key());
      value = wide(block.value());
      scoreMemory = scratch.take(scoreBytes);
      productMemory = scratch.take(productBytes);
      headSize = block.spec().headSize();
    }

    /// Computes `rows` rows of one head, from `row` on.
    void attend(int head, int row, int rows) {
      int first = block.firstSeen(row);
      int end = block.endSeen(row + rows - 1);
      if (first >= end && block.continued() && block.finished().isEmpty()) {
        return;
      }
      begin(head, row, rows);
      // Padding may hold anything: multiplied by a weight of 0, a NaN remains.
      for (int from = block.skipPadding(first); from < end; ) {
        int to = Math.min(Math.min(from + TILE_KEYS, end), block.nextPadding(from));
        add(head, row, rows, from, to - from);
        from = block.skipPadding(to);
      }
      end(head, row, rows);
    }

    private void begin(int head, int row, int rows) {
      var result = block.result();
      for (int i = 0; i < rows; i++) {
        int index = i * headSize;
        float lse =
            block.continued()
                ? result.lse().segment().getAtIndex(ValueLayout.JAVA_FLOAT, lseIndex(head, row + i))
                : Float.NEGATIVE_INFINITY;
        most[i] = lse;
        if (lse == Float.NEGATIVE_INFINITY) {
          sums[i] = 0;
          Arrays.fill(outputs, index, index + headSize, 0);
        } else {
          sums[i] = 1;
          MemorySegment.copy(
              result.output().segment(),
              ValueLayout.JAVA_FLOAT,
              outputIndex(head, row + i) * Float.BYTES,
              outputs,
              index,
              headSize);
        }
      }
    }

    private long outputIndex(int head, int row) {
      return (long) row * block.result().output().columns() + (long) head * headSize;
    }

    private long lseIndex(int head, int row) {
      return (long) row * block.result().lse().columns() + head;
    }

    /// Adds `keys` keys, from `from` on.
    private void add(int head, int row, int rows, int from, int keys) {
      int kvHead = head / block.spec().group();
      Blas.sgemm(
          factor(query, row, head, false),
          factor(key, from, kvHead, true),
          new Blas.Sum(rows, keys, headSize, block.spec().scale(), 0, scoreMemory));
      int all = rows * keys;
      MemorySegment.copy(scoreMemory, ValueLayout.JAVA_FLOAT, 0, scores, 0, all);
      for (int i = 0; i < rows; i++) {
        int seen = Math.max(0, block.firstSeen(row + i) - from);
        int unseen = Math.min(keys, block.endSeen(row + i) - from);
        weigh(i, i * keys, keys, seen, unseen);
      }
      MemorySegment.copy(scores, 0, scoreMemory, ValueLayout.JAVA_FLOAT, 0, all);
      Blas.sgemm(
          new Blas.Factor(scoreMemory, keys, false),
          factor(value, from, kvHead, false),
          new Blas.Sum(rows, headSize, keys, 1, 0, productMemory));
      int count = rows * headSize;
      MemorySegment.copy(productMemory, ValueLayout.JAVA_FLOAT, 0, products, 0, count);
      if (!areFinite(products, count)) {
        leaveOutUnseen(block, row, rows, from, keys, scores, value, kvHead, products);
      }
      for (int i = 0; i < count; i++) {
        outputs[i] += products[i];
      }
    }

    /// Replaces the scores of a row by their weights, and rescales what was summed before.
    ///
    /// @param index first score of the row
    /// @param seen first key that the row sees
    /// @param unseen end of these keys, exclusive
    private void weigh(int i, int index, int keys, int seen, int unseen) {
      if (seen >= unseen) {
        Arrays.fill(scores, index, index + keys, 0);
        return;
      }
      float largest = AttentionTile.largest(scores, index + seen, index + unseen, most[i]);
      float kept = most[i] == largest ? 1 : AttentionTile.exp(most[i] - largest);
      float sum = AttentionTile.weigh(scores, index + seen, index + unseen, largest);
      Arrays.fill(scores, index, index + seen, 0);
      Arrays.fill(scores, index + unseen, index + keys, 0);
      sums[i] = sums[i] * kept + sum;
      most[i] = largest;
      if (kept != 1) {
        for (int j = i * headSize; j < (i + 1) * headSize; j++) {
          outputs[j] *= kept;
        }
      }
    }

    private void end(int head, int row, int rows) {
      var result = block.result();
      for (int i = 0; i < rows; i++) {
        boolean empty = most[i] == Float.NEGATIVE_INFINITY;
        float factor = empty ? 0 : 1 / sums[i];
        for (int j = i * headSize; j < (i + 1) * headSize; j++) {
          outputs[j] *= factor;
        }
        store(outputs, i * headSize, headSize, block.output(), outputIndex(head, row + i));
        result
            .lse()
            .segment()
            .setAtIndex(
                ValueLayout.JAVA_FLOAT,
                lseIndex(head, row + i),
                empty ? Float.NEGATIVE_INFINITY : (float) (most[i] + Math.log(sums[i])));
      }
    }

    private Blas.Factor factor(Matrix matrix, int row, int head, boolean transposed) {
      return HostAttention.factor(matrix, row, head * headSize, transposed);
    }
  }

  /// Returns a matrix from a row and a column on.
  static Blas.Factor factor(Matrix matrix, int row, int column, boolean transposed) {
    long skipped = (long) row * matrix.stride() + column;
    return new Blas.Factor(
        matrix.segment().asSlice(skipped * Float.BYTES), matrix.stride(), transposed);
  }

  /// Returns whether the first `count` numbers are finite: 0 times any other number is NaN.
  static boolean areFinite(float[] numbers, int count) {
    float sum = 0;
    for (int i = 0; i < count; i++) {
      sum += 0 * numbers[i];
    }
    return sum == 0;
  }

  /// Computes products of a tile's weights and keys or values again that are not finite: a NaN or
  /// infinity of a key that the row does not see remains when it is multiplied by a weight of 0.
  static void leaveOutUnseen(
      AttentionBlock block,
      int row,
      int rows,
      int from,
      int keys,
      float[] weights,
      Matrix factor,
      int kvHead,
      float[] products) {
    int headSize = block.spec().headSize();
    for (int i = 0; i < rows; i++) {
      int seen = Math.max(0, block.firstSeen(row + i) - from);
      int unseen = Math.min(keys, block.endSeen(row + i) - from);
      for (int column = 0; column < headSize; column++) {
        int product = i * headSize + column;
        if (Float.isFinite(products[product])) {
          continue;
        }
        products[product] = 0;
        for (int j = seen; j < unseen; j++) {
          long number = (from + (long) j) * factor.stride() + (long) kvHead * headSize + column;
          products[product] +=
              weights[i * keys + j] * factor.segment().getAtIndex(ValueLayout.JAVA_FLOAT, number);
        }
      }
    }
  }

  private static void store(float[] from, int position, int count, Matrix to, long index) {
    if (to.dtype().isStoredAsFp32()) {
      MemorySegment.copy(
          from, position, to.segment(), ValueLayout.JAVA_FLOAT, index * Float.BYTES, count);
      return;
    }
    for (int i = 0; i < count; i++) {
      to.dtype().store(to.segment(), index + i, from[position + i]);
    }
  }

  void merge(AttentionMerge merge) {
    var result = merge.result();
    int heads = result.lse().columns();
    int headSize = heads == 0 ? 0 : result.output().columns() / heads;
    var parts = merge.parts();
    var weights = new double[parts.size()];
    var sum = new double[headSize];
    var rounded = new float[headSize];
    for (int row = 0; row < result.output().rows(); row++) {
      for (int head = 0; head < heads; head++) {
        long lse = (long) row * heads + head;
        long output = lse * headSize;
        double largest = Double.NEGATIVE_INFINITY;
        for (int i = 0; i < weights.length; i++) {
          weights[i] = DType.FP32.load(parts.get(i).lse().segment(), lse);
          largest = Math.max(largest, weights[i]);
        }
        double total = 0;
        for (int i = 0; i < weights.length; i++) {
          weights[i] = largest == Double.NEGATIVE_INFINITY ? 0 : Math.exp(weights[i] - largest);
          total += weights[i];
        }
        Arrays.fill(sum, 0);
        for (int i = 0; i < weights.length; i++) {
          var from = parts.get(i).output().segment();
          double share = total == 0 ? 0 : weights[i] / total;
          for (int j = 0; j < headSize; j++) {
            sum[j] += share * from.getAtIndex(ValueLayout.JAVA_FLOAT, output + j);
          }
        }
        for (int j = 0; j < headSize; j++) {
          rounded[j] = (float) sum[j];
        }
        store(rounded, 0, headSize, result.output(), output);
        DType.FP32.store(
            result.lse().segment(),
            lse,
            total == 0 ? Float.NEGATIVE_INFINITY : (float) (largest + Math.log(total)));
      }
    }
  }

  @Override
  public void close() {
    scratch.close();
  }
}
