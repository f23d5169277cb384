package braid.natives.cudnn;

import braid.natives.cudnn.AttentionProblem.Sequences;
import braid.natives.cudnn.AttentionProblem.Strides;
import braid.natives.kernels.PlainAttention;
import java.util.Arrays;
import java.util.Collections;
import java.util.Random;
import java.util.stream.IntStream;

/// Attention of one or several sequences.
///
/// @param one the problem of one sequence, which has its rows and keys if there is one only
/// @param isBatch true for equal sequences without gaps, which cuDNN computes without tables
/// @param sizes rows and keys of each sequence, and of the gap after it
@SuppressWarnings("ArrayRecordComponent") // Never compared.
record PackedProblem(AttentionProblem one, boolean isBatch, int[]... sizes) {
  static PackedProblem of(
      AttentionProblem.Type type,
      int heads,
      int kvHeads,
      int headSize,
      boolean causal,
      int shift,
      int window,
      int[]... sizes) {
    float scale = (float) (1 / Math.sqrt(headSize));
    return new PackedProblem(
        new AttentionProblem(
            type, heads, kvHeads, headSize, sizes[0][0], sizes[0][1], causal, shift, window, scale),
        /* isBatch= */ false,
        sizes);
  }

  /// Returns the same problem in columns of one tensor: query, key and value, and their gradients.
  PackedProblem fused() {
    long stride = (one.heads() + 2L * one.kvHeads()) * one.headSize();
    var strides = new Strides(stride, stride, stride, 0, stride, stride, stride);
    return new PackedProblem(one.with(strides), isBatch, sizes);
  }

  /// Returns as many of the same sequence.
  PackedProblem times(int count) {
    return new PackedProblem(one, true, Collections.nCopies(count, sizes[0]).toArray(int[][]::new));
  }

  boolean isPacked() {
    return sizes.length > 1 && !isBatch;
  }

  /// Returns the problem that cuDNN solves.
  AttentionProblem problem() {
    if (!isPacked()) {
      return isBatch ? one.times(sizes.length) : one;
    }
    return new AttentionProblem(
        one.type(),
        one.heads(),
        one.kvHeads(),
        one.headSize(),
        Arrays.stream(sizes).mapToInt(each -> each[0]).max().orElseThrow(),
        Arrays.stream(sizes).mapToInt(each -> each[1]).max().orElseThrow(),
        one.causal(),
        0,
        one.window(),
        one.scale(),
        new Sequences(sizes.length, first(0, sizes.length), first(1, sizes.length), false),
        one.strides());
  }

  /// Returns the first row (of 0) or key (of 1) of a sequence, or the end of all.
  int first(int side, int sequence) {
    return Arrays.stream(sizes).limit(sequence).mapToInt(each -> each[side] + each[side + 2]).sum();
  }

  /// Returns random numbers that both types represent; NaN in gaps.
  ///
  /// @param side 0 for a row per query, 1 for one per key
  double[] numbers(int side, int columns, long seed) {
    var numbers = new double[first(side, sizes.length) * columns];
    Arrays.fill(numbers, Double.NaN);
    var random = new Random(seed);
    for (int i = 0; i < sizes.length; i++) {
      int from = first(side, i) * columns;
      for (int index = from; index < from + sizes[i][side] * columns; index++) {
        numbers[index] = Math.rint(random.nextDouble(-2, 2) * 32) / 32;
      }
    }
    return numbers;
  }

  /// Returns the sequence of each row (of 0) or key (of 1); -1 in gaps.
  private int[] sequences(int side) {
    var sequences = new int[first(side, sizes.length)];
    Arrays.fill(sequences, -1);
    for (int i = 0; i < sizes.length; i++) {
      Arrays.fill(sequences, first(side, i), first(side, i) + sizes[i][side], i);
    }
    return sequences;
  }

  PlainAttention plain(double[] query, double[] key, double[] value) {
    int columns = one.heads() * one.headSize();
    int kvColumns = one.kvHeads() * one.headSize();
    var ofRow = sequences(0);
    var ofKey = sequences(1);
    // From a row's number to the number of the key at its position.
    var shifts = new int[sizes.length];
    Arrays.setAll(shifts, i -> first(1, i) - first(0, i) + one.shift());
    PlainAttention.Mask mask =
        (row, other) -> {
          if (ofRow[row] < 0 || ofRow[row] != ofKey[other]) {
            return false;
          }
          int back = row + shifts[ofRow[row]] - other;
          return !(one.causal() && back < 0) && !(one.window() > 0 && back >= one.window());
        };
    return new PlainAttention(
        new PlainAttention.Shape(
            first(0, sizes.length),
            first(1, sizes.length),
            one.heads(),
            one.heads() / one.kvHeads(),
            one.headSize(),
            one.scale()),
        mask,
        PlainAttention.numbers(columns, query),
        PlainAttention.numbers(kvColumns, key),
        PlainAttention.numbers(kvColumns, value));
  }

  /// Returns the rows (of 0) or keys (of 1) of all sequences, without gaps.
  int[] positions(int side) {
    var sequences = sequences(side);
    return IntStream.range(0, sequences.length).filter(i -> sequences[i] >= 0).toArray();
  }

  @Override
  public String toString() {
    return (isPacked()
            ? "%s, rows and keys and gaps %s".formatted(one, Arrays.deepToString(sizes))
            : problem().toString())
        + (one.strides().equals(Strides.NONE) ? "" : ", fused");
  }
}
