package braid;

import static braid.natives.kernels.PlainAttention.all;
import static braid.natives.kernels.PlainAttention.numbers;

import braid.internal.selftest.AttentionOracle;
import braid.model.AttentionSpec;
import braid.model.DType;
import braid.natives.kernels.PlainAttention.Errors;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/// Random inputs of attention, the expected results of the whole sequence, and the rows of it that
/// a rank holds.
final class PlainAttention {
  private PlainAttention() {}

  /// Query, key and value of the whole sequence: a row per query, and per key.
  @SuppressWarnings("ArrayRecordComponent") // Nobody compares them.
  record Inputs(float[] query, float[] key, float[] value) {
    static Inputs of(AttentionSpec spec, long seed) {
      var random = new Random(seed);
      int kv = spec.keys() * spec.kvHeads() * spec.headSize();
      var inputs =
          new Inputs(
              numbers(random, spec.sequence() * spec.heads() * spec.headSize(), spec.dtype()),
              numbers(random, kv, spec.dtype()),
              numbers(random, kv, spec.dtype()));
      // Nothing of padding, or of keys that no query sees, may reach a result.
      var sequenceOf = AttentionOracle.sequences(spec.packing().queries());
      for (int i = 0; i < spec.sequence(); i++) {
        if (sequenceOf[i] < 0) {
          clear(inputs.query, i, spec.sequence());
        }
      }
      var unseen = AttentionOracle.unseen(spec);
      for (int i = 0; i < spec.keys(); i++) {
        if (unseen[i]) {
          clear(inputs.key, i, spec.keys());
          clear(inputs.value, i, spec.keys());
        }
      }
      return inputs;
    }

    private static void clear(float[] numbers, int row, int rows) {
      int width = numbers.length / rows;
      Arrays.fill(numbers, row * width, (row + 1) * width, Float.NaN);
    }

    private braid.natives.kernels.PlainAttention plain(AttentionSpec spec) {
      return AttentionOracle.plain(spec, query, key, value);
    }

    static float[] numbers(Random random, int count, DType dtype) {
      var numbers = new float[count];
      for (int i = 0; i < count; i++) {
        numbers[i] = dtype.round((float) random.nextGaussian());
      }
      return numbers;
    }
  }

  /// Output and LSE of the whole sequence.
  @SuppressWarnings("ArrayRecordComponent") // Nobody compares them.
  record Expected(double[] output, double[] lse) {
    static Expected of(AttentionSpec spec, Inputs inputs) {
      var result = inputs.plain(spec).forward(Errors.FP32, all(spec.sequence()));
      return new Expected(result.output().values(), result.lse().values());
    }
  }

  /// Gradients of query, key and value of the whole sequence.
  @SuppressWarnings("ArrayRecordComponent") // Nobody compares them.
  record Gradients(double[] query, double[] key, double[] value) {
    static Gradients of(AttentionSpec spec, Inputs inputs, float[] outputGradient) {
      var gradients =
          inputs
              .plain(spec)
              .backward(
                  Errors.FP32,
                  numbers(spec.heads() * spec.headSize(), outputGradient),
                  all(spec.sequence()),
                  all(spec.keys()));
      return new Gradients(
          gradients.query().values(), gradients.key().values(), gradients.value().values());
    }
  }

  /// Queries of a rank, by the definition of the layouts.
  static List<Integer> positions(AttentionSpec spec, int ranks, int rank) {
    return Arrays.stream(AttentionOracle.positions(spec, ranks, rank)).boxed().toList();
  }

  /// Keys of a rank, by the definition of the layouts.
  static List<Integer> keys(AttentionSpec spec, int ranks, int rank) {
    return Arrays.stream(AttentionOracle.positions(spec, spec.packing().keys(), ranks, rank))
        .boxed()
        .toList();
  }

  static float[] rows(float[] all, List<Integer> positions, int columns) {
    return AttentionOracle.rows(
        all, columns, positions.stream().mapToInt(Integer::intValue).toArray());
  }
}
