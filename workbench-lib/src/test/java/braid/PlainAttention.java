package braid;

import static braid.natives.kernels.PlainAttention.all;
import static braid.natives.kernels.PlainAttention.numbers;

import braid.internal.selftest.AttentionCase;
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

  /// Query, key and value of the whole sequence: a row per position.
  @SuppressWarnings("ArrayRecordComponent") // Nobody compares them.
  record Inputs(float[] query, float[] key, float[] value) {
    static Inputs of(AttentionSpec spec, long seed) {
      var random = new Random(seed);
      int kv = spec.sequence() * spec.kvHeads() * spec.headSize();
      var inputs =
          new Inputs(
              numbers(random, spec.sequence() * spec.heads() * spec.headSize(), spec.dtype()),
              numbers(random, kv, spec.dtype()),
              numbers(random, kv, spec.dtype()));
      var sequenceOf = AttentionCase.sequences(spec);
      for (int i = 0; i < spec.sequence(); i++) {
        if (sequenceOf[i] < 0) {
          for (var each : List.of(inputs.query, inputs.key, inputs.value)) {
            int width = each.length / spec.sequence();
            // Nothing of it may reach a result.
            Arrays.fill(each, i * width, (i + 1) * width, Float.NaN);
          }
        }
      }
      return inputs;
    }

    private braid.natives.kernels.PlainAttention plain(AttentionSpec spec) {
      return AttentionCase.plain(spec, query, key, value);
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
      var positions = all(spec.sequence());
      var gradients =
          inputs
              .plain(spec)
              .backward(
                  Errors.FP32,
                  numbers(spec.heads() * spec.headSize(), outputGradient),
                  positions,
                  positions);
      return new Gradients(
          gradients.query().values(), gradients.key().values(), gradients.value().values());
    }
  }

  /// Positions of a rank's rows, by the definition of the layouts.
  static List<Integer> positions(AttentionSpec spec, int ranks, int rank) {
    return Arrays.stream(AttentionCase.positions(spec, ranks, rank)).boxed().toList();
  }

  static float[] rows(float[] all, List<Integer> positions, int columns) {
    return AttentionCase.rows(
        all, columns, positions.stream().mapToInt(Integer::intValue).toArray());
  }
}
