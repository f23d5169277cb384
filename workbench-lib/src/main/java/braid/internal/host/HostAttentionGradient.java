package braid.internal.host;

import braid.internal.work.AttentionGradientBlock;
import braid.internal.work.AttentionTile;
import braid.internal.work.Matrix;
import braid.model.DType;
import braid.model.Tokens;
import braid.natives.Blas;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.function.LongPredicate;

/// Gradients of one stream's attention, block by block. OpenBLAS multiplies, in fp32; narrow types
/// are widened. Each head takes tiles of rows × keys:
///
/// ```
/// weight         = e^(scale · query · keyᵀ - lse)        0 for positions that a row does not see
/// change         = weight · (outputGradient · valueᵀ - Σ outputGradient · output) · scale
/// valueGradient += weightᵀ · outputGradient
/// keyGradient   += changeᵀ · query
/// queryGradient += change · key
/// ```
///
/// The gradients of a tile of keys are summed over all rows, and over all heads that share them,
/// before they are added to the result.
final class HostAttentionGradient implements AutoCloseable {
  /// Rows and keys of a tile: weights and changes fit into the L2 cache of a core.
  private static final int TILE_ROWS = 128;

  private static final int TILE_KEYS = 128;

  /// Largest argument of [AttentionTile#exp]. A weight is at most 1, but for roundings.
  private static final float MOST_EXPONENT = 0.25f;

  private final int threads;
  private final HostScratch scratch = new HostScratch();
  // Allocated by the first block: most streams never need it.
  private float[] weights = {};
  private float[] changes = {};
  private float[] numbers = {};
  private float[] more = {};

  HostAttentionGradient(int threads) {
    this.threads = threads;
  }

  void attend(AttentionGradientBlock gradient) {
    var block = gradient.block();
    if (block.query().rows() == 0) {
      return;
    }
    HostGemm.limitThreads(threads);
    int headSize = block.spec().headSize();
    int tile = Math.max(TILE_ROWS, TILE_KEYS) * headSize;
    if (numbers.length < tile) {
      weights = new float[TILE_ROWS * TILE_KEYS];
      changes = new float[TILE_ROWS * TILE_KEYS];
      numbers = new float[tile];
      more = new float[tile];
    }
    long scoreBytes = (long) weights.length * Float.BYTES;
    long tileBytes = (long) numbers.length * Float.BYTES;
    scratch.begin(
        2 * scoreBytes
            + 3 * HostScratch.roundUp(tileBytes)
            + HostAttention.wideBytes(
                block.query(),
                block.key(),
                block.value(),
                block.result().output(),
                gradient.outputGradient(),
                gradient.queryGradient(),
                gradient.keyGradient(),
                gradient.valueGradient()));
    var sums =
        new AttentionGradientBlock(
            block,
            gradient.outputGradient(),
            wideSum(gradient.queryGradient()),
            wideSum(gradient.keyGradient()),
            wideSum(gradient.valueGradient()),
            gradient.continuesQuery(),
            gradient.continuesKeys(),
            gradient.deterministic());
    new Tiles(sums, scoreBytes, tileBytes).attend();
    narrow(sums.queryGradient(), gradient.queryGradient());
    narrow(sums.keyGradient(), gradient.keyGradient());
    narrow(sums.valueGradient(), gradient.valueGradient());
  }

  /// Returns scratch memory for a gradient that is not stored in fp32.
  private Matrix wideSum(Matrix gradient) {
    return gradient.dtype().isStoredAsFp32()
        ? gradient
        : Matrix.of(
            scratch.take(HostAttention.wideBytes(gradient)),
            DType.FP32,
            gradient.rows(),
            gradient.columns());
  }

  private static void narrow(Matrix sum, Matrix gradient) {
    if (!gradient.dtype().isStoredAsFp32()) {
      Numbers.narrow(sum, gradient);
    }
  }

  private Matrix wide(Matrix matrix) {
    return HostAttention.wide(matrix, scratch);
  }

  /// The tiles of one block, in fp32.
  private final class Tiles {
    private final AttentionGradientBlock gradient;
    private final Matrix query;
    private final Matrix key;
    private final Matrix value;
    private final Matrix outputGradient;
    private final MemorySegment weightMemory;
    private final MemorySegment changeMemory;
    private final MemorySegment keyMemory;
    private final MemorySegment valueMemory;
    private final MemorySegment queryMemory;
    private final int headSize;
    private final int heads;

    /// Sums of the products of output and its gradient, by row and head.
    private final float[] deltas;

    Tiles(AttentionGradientBlock gradient, long scoreBytes, long tileBytes) {
      this.gradient = gradient;
      var block = gradient.block();
      query = wide(block.query());
      key = wide(block.key());
      value = wide(block.value());
      outputGradient = wide(gradient.outputGradient());
      weightMemory = scratch.take(scoreBytes);
      changeMemory = scratch.take(scoreBytes);
      keyMemory = scratch.take(tileBytes);
      valueMemory = scratch.take(tileBytes);
      queryMemory = scratch.take(tileBytes);
      headSize = block.spec().headSize();
      heads = block.spec().heads();
      deltas = deltas(wide(block.result().output()));
    }

    private float[] deltas(Matrix output) {
      var sums = new float[query.rows() * heads];
      var left = new float[output.columns()];
      var right = new float[output.columns()];
      for (int row = 0; row < query.rows(); row++) {
        load(output, row, 0, left, 0, left.length);
        load(outputGradient, row, 0, right, 0, right.length);
        for (int head = 0; head < heads; head++) {
          double sum = 0;
          for (int i = head * headSize; i < (head + 1) * headSize; i++) {
            sum += (double) left[i] * right[i];
          }
          sums[row * heads + head] = (float) sum;
        }
      }
      return sums;
    }

    void attend() {
      var block = gradient.block();
      if (!gradient.continuesQuery()) {
        var zeroed = gradient.queryGradient();
        for (int row = 0; row < zeroed.rows(); row++) {
          zeroed.rows(row, 1).bytes().fill((byte) 0);
        }
      }
      for (int kvHead = 0; kvHead < block.spec().kvHeads(); kvHead++) {
        for (int from = 0, end; from < key.rows(); from = end) {
          end = end(block.keys(), block.spec()::isUnseen, from, TILE_KEYS, key.rows());
          attend(kvHead, from, end - from);
        }
      }
    }

    /// Returns the end of a tile from `from` on: either all or none of it is without effect, such
    /// as padding, which may hold anything. Multiplied by a weight of 0, a NaN remains.
    private int end(Tokens positions, LongPredicate isWithout, int from, int most, int all) {
      int limit = Math.min(from + most, all);
      var spec = gradient.block().spec();
      return (int) Math.min(limit, positions.endOfKind(spec, isWithout, from, limit));
    }

    /// Adds the tiles of all rows to `keys` keys of one head, from `from` on.
    private void attend(int kvHead, int from, int keys) {
      var block = gradient.block();
      int group = block.spec().group();
      boolean begun = false;
      boolean unseen = block.spec().isUnseen(block.keys().at(from));
      for (int head = kvHead * group; head < (kvHead + 1) * group && !unseen; head++) {
        for (var run : block.queries().runs()) {
          for (int row = (int) run.row(), end; row < run.endRow(); row = end) {
            int endOfRun = (int) run.endRow();
            end = end(block.queries(), block.spec()::seesNothing, row, TILE_ROWS, endOfRun);
            if (!block.spec().seesNothing(block.queries().at(row))
                && block.firstSeen(row) < from + keys
                && block.endSeen(end - 1) > from) {
              add(head, kvHead, row, end - row, from, keys, begun);
              begun = true;
            }
          }
        }
      }
      if (!begun && gradient.continuesKeys()) {
        return;
      }
      int count = keys * headSize;
      if (!begun) {
        keyMemory.asSlice(0, (long) count * Float.BYTES).fill((byte) 0);
        valueMemory.asSlice(0, (long) count * Float.BYTES).fill((byte) 0);
      }
      boolean adds = gradient.continuesKeys();
      store(keyMemory, keys, gradient.keyGradient(), from, kvHead * headSize, adds);
      store(valueMemory, keys, gradient.valueGradient(), from, kvHead * headSize, adds);
    }

    private void add(
        int head, int kvHead, int row, int rows, int from, int keys, boolean continued) {
      var spec = gradient.block().spec();
      var queries = factor(query, row, head, false);
      var outputs = factor(outputGradient, row, head, false);
      Blas.sgemm(
          queries,
          factor(key, from, kvHead, true),
          new Blas.Sum(rows, keys, headSize, spec.scale(), 0, weightMemory));
      Blas.sgemm(
          outputs,
          factor(value, from, kvHead, true),
          new Blas.Sum(rows, keys, headSize, 1, 0, changeMemory));
      weigh(head, row, rows, from, keys);
      float keep = continued ? 1 : 0;
      Blas.sgemm(
          new Blas.Factor(weightMemory, keys, true),
          outputs,
          new Blas.Sum(keys, headSize, rows, 1, keep, valueMemory));
      Blas.sgemm(
          new Blas.Factor(changeMemory, keys, true),
          queries,
          new Blas.Sum(keys, headSize, rows, 1, keep, keyMemory));
      Blas.sgemm(
          new Blas.Factor(changeMemory, keys, false),
          factor(key, from, kvHead, false),
          new Blas.Sum(rows, headSize, keys, 1, 0, queryMemory));
      int count = rows * headSize;
      MemorySegment.copy(queryMemory, ValueLayout.JAVA_FLOAT, 0, numbers, 0, count);
      if (!HostAttention.areFinite(numbers, count)) {
        HostAttention.leaveOutUnseen(
            gradient.block(), row, rows, from, keys, changes, key, kvHead, numbers);
        MemorySegment.copy(numbers, 0, queryMemory, ValueLayout.JAVA_FLOAT, 0, count);
      }
      store(queryMemory, rows, gradient.queryGradient(), row, head * headSize, true);
    }

    /// Replaces scores by weights, and the gradients of weights by those of scores.
    private void weigh(int head, int row, int rows, int from, int keys) {
      var block = gradient.block();
      int all = rows * keys;
      MemorySegment.copy(weightMemory, ValueLayout.JAVA_FLOAT, 0, weights, 0, all);
      MemorySegment.copy(changeMemory, ValueLayout.JAVA_FLOAT, 0, changes, 0, all);
      for (int i = 0; i < rows; i++) {
        int seen = Math.clamp(block.firstSeen(row + i) - from, 0, keys);
        int unseen = Math.clamp(block.endSeen(row + i) - from, seen, keys);
        long index = (long) (row + i) * heads + head;
        float lse = block.result().lse().segment().getAtIndex(ValueLayout.JAVA_FLOAT, index);
        float delta = deltas[(int) index];
        int first = i * keys;
        for (int j = first + seen; j < first + unseen; j++) {
          float exponent = weights[j] - lse;
          float weight =
              exponent <= MOST_EXPONENT ? AttentionTile.exp(exponent) : (float) Math.exp(exponent);
          weights[j] = weight;
          changes[j] = weight * (changes[j] - delta) * block.spec().scale();
        }
        for (var each : List.of(weights, changes)) {
          Arrays.fill(each, first, first + seen, 0);
          Arrays.fill(each, first + unseen, first + keys, 0);
        }
      }
      MemorySegment.copy(weights, 0, weightMemory, ValueLayout.JAVA_FLOAT, 0, all);
      MemorySegment.copy(changes, 0, changeMemory, ValueLayout.JAVA_FLOAT, 0, all);
    }

    /// Stores rows of a head, or adds them.
    private void store(MemorySegment from, int rows, Matrix to, int row, int column, boolean adds) {
      int count = rows * headSize;
      MemorySegment.copy(from, ValueLayout.JAVA_FLOAT, 0, numbers, 0, count);
      for (int i = 0; i < rows; i++) {
        long index = (long) (row + i) * to.stride() + column;
        if (adds) {
          load(to, row + i, column, more, 0, headSize);
          for (int j = 0; j < headSize; j++) {
            numbers[i * headSize + j] += more[j];
          }
        }
        MemorySegment.copy(
            numbers,
            i * headSize,
            to.segment(),
            ValueLayout.JAVA_FLOAT,
            index * Float.BYTES,
            headSize);
      }
    }

    private static void load(
        Matrix from, int row, int column, float[] target, int index, int count) {
      long first = (long) row * from.stride() + column;
      MemorySegment.copy(
          from.segment(), ValueLayout.JAVA_FLOAT, first * Float.BYTES, target, index, count);
    }

    private Blas.Factor factor(Matrix matrix, int row, int head, boolean transposed) {
      return HostAttention.factor(matrix, row, head * headSize, transposed);
    }
  }

  @Override
  public void close() {
    scratch.close();
  }
}
