package braid;

import braid.model.AttentionSpec;
import braid.model.DType;
import braid.model.TokenLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/// Pipeline and its gradients by plain loops in double precision over the whole sequence, and the
/// rows of it that a rank holds.
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
      var sequenceOf = sequenceOf(spec);
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
    /// Three loops: queries, keys, and the numbers of a head.
    static Expected of(AttentionSpec spec, Inputs inputs) {
      int size = spec.headSize();
      var output = new double[inputs.query().length];
      var lse = new double[spec.sequence() * spec.heads()];
      var sequenceOf = sequenceOf(spec);
      for (int i = 0; i < spec.sequence(); i++) {
        for (int head = 0; head < spec.heads(); head++) {
          int kvHead = head * spec.kvHeads() / spec.heads();
          var weights = weights(spec, sequenceOf, inputs, i, head);
          double sum = Arrays.stream(weights).sum();
          lse[i * spec.heads() + head] = Math.log(sum);
          for (int j = 0; j < spec.sequence(); j++) {
            for (int c = 0; c < size && weights[j] > 0; c++) {
              output[(i * spec.heads() + head) * size + c] +=
                  weights[j] / sum * inputs.value()[(j * spec.kvHeads() + kvHead) * size + c];
            }
          }
        }
      }
      return new Expected(output, lse);
    }
  }

  /// Gradients of query, key and value of the whole sequence.
  @SuppressWarnings("ArrayRecordComponent") // Nobody compares them.
  record Gradients(double[] query, double[] key, double[] value) {
    /// The forward pass and its derivative, query by query.
    static Gradients of(AttentionSpec spec, Inputs inputs, float[] outputGradient) {
      int size = spec.headSize();
      var ofQuery = new double[inputs.query().length];
      var ofKey = new double[inputs.key().length];
      var ofValue = new double[inputs.value().length];
      var sequenceOf = sequenceOf(spec);
      for (int i = 0; i < spec.sequence(); i++) {
        for (int head = 0; head < spec.heads(); head++) {
          int q = (i * spec.heads() + head) * size;
          int kvHead = head * spec.kvHeads() / spec.heads();
          var weights = weights(spec, sequenceOf, inputs, i, head);
          double sum = Arrays.stream(weights).sum();
          var changes = new double[spec.sequence()];
          double mean = 0;
          for (int j = 0; j < spec.sequence(); j++) {
            int k = (j * spec.kvHeads() + kvHead) * size;
            if (weights[j] == 0) {
              continue; // It may be padding, which holds anything.
            }
            weights[j] /= sum;
            for (int c = 0; c < size; c++) {
              changes[j] += (double) outputGradient[q + c] * inputs.value()[k + c];
            }
            mean += weights[j] * changes[j];
          }
          for (int j = 0; j < spec.sequence(); j++) {
            if (weights[j] == 0) {
              continue;
            }
            int k = (j * spec.kvHeads() + kvHead) * size;
            double ofScore = weights[j] * (changes[j] - mean) * spec.scale();
            for (int c = 0; c < size; c++) {
              ofQuery[q + c] += ofScore * inputs.key()[k + c];
              ofKey[k + c] += ofScore * inputs.query()[q + c];
              ofValue[k + c] += weights[j] * outputGradient[q + c];
            }
          }
        }
      }
      return new Gradients(ofQuery, ofKey, ofValue);
    }
  }

  /// Returns the exponential of each position's score; 0 for a position that the query does not
  /// see.
  private static double[] weights(
      AttentionSpec spec, int[] sequenceOf, Inputs inputs, int i, int head) {
    int size = spec.headSize();
    int kvHead = head * spec.kvHeads() / spec.heads();
    var weights = new double[spec.sequence()];
    for (int j = 0; j < spec.sequence(); j++) {
      boolean later = spec.isCausal() && j > i;
      boolean tooEarly = spec.window() > 0 && i - j >= spec.window();
      boolean together = sequenceOf[i] >= 0 && sequenceOf[i] == sequenceOf[j];
      if (!later && !tooEarly && together) {
        double score = 0;
        for (int c = 0; c < size; c++) {
          score +=
              (double) inputs.query()[(i * spec.heads() + head) * size + c]
                  * inputs.key()[(j * spec.kvHeads() + kvHead) * size + c];
        }
        weights[j] = Math.exp(score * spec.scale());
      }
    }
    return weights;
  }

  /// Sequence of each position; -1 for padding.
  static int[] sequenceOf(AttentionSpec spec) {
    var sequenceOf = new int[spec.sequence()];
    Arrays.fill(sequenceOf, -1);
    var ends = spec.packing().cumulative();
    for (int token = 0, sequence = 0; token < ends.getLast(); token++) {
      while (ends.get(sequence + 1) <= token) {
        sequence++;
      }
      sequenceOf[spec.packing().padded().get(sequence) + token - ends.get(sequence)] = sequence;
    }
    return sequenceOf;
  }

  /// Positions of a rank's rows, by the definition of the layouts.
  static List<Integer> positions(AttentionSpec spec, int ranks, int rank) {
    int parts = spec.layout() == TokenLayout.ZIGZAG ? 2 * ranks : ranks;
    var positions = new ArrayList<Integer>();
    var held =
        spec.layout() == TokenLayout.ZIGZAG ? List.of(rank, 2 * ranks - 1 - rank) : List.of(rank);
    for (int part : held) {
      int next = 0;
      for (int each = 0; each < parts; each++) {
        int length = spec.sequence() / parts + (each < spec.sequence() % parts ? 1 : 0);
        for (int i = 0; i < length; i++, next++) {
          if (each == part) {
            positions.add(next);
          }
        }
      }
    }
    return positions;
  }

  static float[] rows(float[] all, List<Integer> positions, int columns) {
    var rows = new float[positions.size() * columns];
    for (int row = 0; row < positions.size(); row++) {
      System.arraycopy(all, positions.get(row) * columns, rows, row * columns, columns);
    }
    return rows;
  }
}
