package braid.natives.kernels;

import java.util.Arrays;
import java.util.Optional;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Attention and its gradients by plain loops in double precision, with bounds of the errors of
/// fp32 and of 16-bit types: the oracle of our kernels, of cuDNN, of the self-test and of tests.
/// `Pipeline.verify` has its own.
///
/// Exponentials of scores are not scaled, so scores must be below some hundreds. What no row sees
/// may be NaN.
public final class PlainAttention {
  /// Errors of fp32, relative to the sum of absolute terms or to the LSE.
  public static final double FP32_ERROR = 1e-5;

  /// Roundings to a 16-bit type of a weight or change, of a block's gradient, and of a head's in a
  /// group.
  private static final int ROUNDINGS = 3;

  /// Size of a sum of independent roundings, of an output and of its part by a block, relative to
  /// the root of the sum of their squares.
  private static final int CONFIDENCE = 4;

  /// Numbers of a tensor: a row per position, with the numbers of all heads.
  public interface Numbers {
    double at(int row, int column);
  }

  /// Pairs of which the row of the query sees the key.
  public interface Mask {
    boolean sees(int row, int key);
  }

  /// @param group number of heads that share a head of key and value
  /// @param size numbers of a head
  /// @param scale factor of the scores
  public record Shape(int rows, int keys, int heads, int group, int size, double scale) {}

  /// Errors of a computation beside those of fp32.
  ///
  /// @param rounding relative error of rounding weights and their changes to a type; 0 in fp32
  /// @param least absolute error of a rounded number, below the type's normal numbers
  public record Errors(double rounding, double least) {
    /// All in fp32.
    public static final Errors FP32 = new Errors(0, 0x1p-120);

    public static final Errors BF16 = new Errors(0x1p-8, 0x1p-120);
    public static final Errors FP16 = new Errors(0x1p-11, 0x1p-24);
  }

  /// Numbers and bounds of their errors, row by row.
  @SuppressWarnings("ArrayRecordComponent") // Nobody compares them.
  public record Bounded(double[] values, double[] bounds) {
    private static Bounded zeros(int count) {
      return new Bounded(new double[count], new double[count]);
    }

    private void add(int index, double value, double bound) {
      values[index] += value;
      bounds[index] += bound;
    }

    /// Returns these numbers added to others.
    public Bounded plus(Numbers others, int columns) {
      var sum = new Bounded(values.clone(), bounds.clone());
      for (int i = 0; i < values.length; i++) {
        double other = others.at(i / columns, i % columns);
        sum.add(i, other, FP32_ERROR * Math.abs(other));
      }
      return sum;
    }

    /// Returns these numbers as a type stores them; what has no term is 0.
    public Bounded stored(Errors type) {
      var all = bounds.clone();
      for (int i = 0; i < all.length; i++) {
        all[i] += all[i] == 0 ? 0 : 2 * type.rounding * Math.abs(values[i]) + FP32_ERROR;
      }
      return new Bounded(values, all);
    }

    /// Returns the first number that is not within its bound; empty if all are.
    public Optional<String> wrong(String name, double... got) {
      var wrong =
          IntStream.range(0, values.length)
              .filter(i -> got[i] != values[i] && !(Math.abs(got[i] - values[i]) <= bounds[i]))
              .toArray();
      return wrong.length == 0
          ? Optional.empty()
          : Optional.of(
              "number %d of the %s is %s but should be %s within %.1e; %d of %d are wrong"
                  .formatted(
                      wrong[0],
                      name,
                      got[wrong[0]],
                      values[wrong[0]],
                      bounds[wrong[0]],
                      wrong.length,
                      values.length));
    }
  }

  /// Output and LSE of some rows.
  public record Result(Bounded output, Bounded lse) {}

  /// Gradients of some rows of the query, and of some keys and their values.
  public record Gradients(Bounded query, Bounded key, Bounded value) {}

  private final Shape shape;
  private final Mask mask;
  private final double[] query;
  private final double[] key;
  private final double[] value;

  public PlainAttention(Shape shape, Mask mask, Numbers query, Numbers key, Numbers value) {
    this.shape = shape;
    this.mask = mask;
    this.query = copied(query, shape.rows, shape.heads * shape.size);
    int kvColumns = shape.heads / shape.group * shape.size;
    this.key = copied(key, shape.keys, kvColumns);
    this.value = copied(value, shape.keys, kvColumns);
  }

  /// Returns numbers that lie row by row without gaps.
  public static Numbers numbers(int columns, float... all) {
    return (row, column) -> all[row * columns + column];
  }

  /// Returns numbers that lie row by row without gaps.
  public static Numbers numbers(int columns, double... all) {
    return (row, column) -> all[row * columns + column];
  }

  private static double[] copied(Numbers numbers, int rows, int columns) {
    var all = new double[rows * columns];
    for (int i = 0; i < all.length; i++) {
      all[i] = numbers.at(i / columns, i % columns);
    }
    return all;
  }

  /// Returns the numbers from 0 on.
  public static int[] all(int count) {
    return IntStream.range(0, count).toArray();
  }

  private int queryAt(int row, int head) {
    return (row * shape.heads + head) * shape.size;
  }

  private int keyAt(int row, int head) {
    return (row * (shape.heads / shape.group) + head / shape.group) * shape.size;
  }

  /// Returns the exponential of the score of each key; 0 for those that the row does not see.
  private double[] weights(int row, int head) {
    var weights = new double[shape.keys];
    int q = queryAt(row, head);
    for (int j = 0; j < weights.length; j++) {
      if (mask.sees(row, j)) {
        double score = 0;
        int k = keyAt(j, head);
        for (int c = 0; c < shape.size; c++) {
          score += query[q + c] * key[k + c];
        }
        weights[j] = Math.exp(score * shape.scale);
      }
    }
    return weights;
  }

  /// Returns the attention of some rows.
  public Result forward(Errors errors, int... rows) {
    return forward(errors, (_, _) -> 0, (_, _) -> Double.NEGATIVE_INFINITY, rows);
  }

  /// Returns the attention of some rows, which continues their attention to other keys.
  public Result forward(Errors errors, Numbers outputBefore, Numbers lseBefore, int... rows) {
    var output = Bounded.zeros(rows.length * shape.heads * shape.size);
    var lse = Bounded.zeros(rows.length * shape.heads);
    for (int i = 0; i < rows.length; i++) {
      for (int head = 0; head < shape.heads; head++) {
        var weights = weights(rows[i], head);
        double before = Math.exp(lseBefore.at(rows[i], head));
        double sum = before + Arrays.stream(weights).sum();
        double log = Math.log(sum);
        lse.add(i * shape.heads + head, log, FP32_ERROR * (1 + Math.abs(log)));
        for (int c = 0; c < shape.size && sum > 0; c++) {
          double old =
              before == 0 ? 0 : before / sum * outputBefore.at(rows[i], head * shape.size + c);
          double number = old;
          double absolute = Math.abs(old);
          for (int j = 0; j < weights.length; j++) {
            if (weights[j] > 0) {
              double each = weights[j] / sum * value[keyAt(j, head) + c];
              number += each;
              absolute += Math.abs(each);
            }
          }
          output.add(queryAt(i, head) + c, number, (FP32_ERROR + errors.rounding) * absolute);
        }
      }
    }
    return new Result(output, lse);
  }

  /// Returns gradients of attention to these keys only.
  public Gradients backward(Errors errors, Numbers outputGradient, int[] rows, int[] keys) {
    return backward(errors, outputGradient, null, null, rows, keys);
  }

  /// Returns gradients of attention to more keys, whose output and LSE are given.
  ///
  /// @param rows of the query whose gradients are returned
  /// @param keys keys whose gradients are returned, of all rows
  public Gradients backward(
      Errors errors,
      Numbers outputGradient,
      @Nullable Numbers output,
      @Nullable Numbers lse,
      int[] rows,
      int[] keys) {
    int kvHeads = shape.heads / shape.group;
    var gradients =
        new Gradients(
            Bounded.zeros(rows.length * shape.heads * shape.size),
            Bounded.zeros(keys.length * kvHeads * shape.size),
            Bounded.zeros(keys.length * kvHeads * shape.size));
    var keptRows = inverse(shape.rows, rows);
    var keptKeys = inverse(shape.keys, keys);
    for (int row = 0; row < shape.rows; row++) {
      for (int head = 0; head < shape.heads; head++) {
        backward(
            gradients, errors, outputGradient, output, lse, row, head, keptRows[row], keptKeys);
      }
    }
    return gradients;
  }

  private static int[] inverse(int count, int... chosen) {
    var places = new int[count];
    Arrays.fill(places, -1);
    for (int i = 0; i < chosen.length; i++) {
      places[chosen[i]] = i;
    }
    return places;
  }

  /// Adds the products of a row of the query and the keys that it sees.
  private void backward(
      Gradients to,
      Errors errors,
      Numbers outputGradient,
      @Nullable Numbers output,
      @Nullable Numbers lse,
      int row,
      int head,
      int keptRow,
      int[] keptKeys) {
    var weights = weights(row, head);
    double sum = lse == null ? Arrays.stream(weights).sum() : Math.exp(lse.at(row, head));
    if (sum == 0
        || IntStream.range(0, weights.length)
            .noneMatch(j -> weights[j] > 0 && (keptRow >= 0 || keptKeys[j] >= 0))) {
      return;
    }
    int size = shape.size;
    var gradient = new double[size];
    for (int c = 0; c < size; c++) {
      gradient[c] = outputGradient.at(row, head * size + c);
    }
    var products = new double[weights.length];
    var sizes = new double[weights.length];
    var absolute = new double[size];
    double mean = 0;
    double meanSize = 0;
    // Of the mean, since the output that the backward pass reads is rounded, and so are its
    // weights.
    double roundings = 0;
    for (int j = 0; j < weights.length; j++) {
      if (weights[j] > 0) {
        weights[j] /= sum;
        int kv = keyAt(j, head);
        for (int c = 0; c < size; c++) {
          double product = gradient[c] * value[kv + c];
          products[j] += product;
          sizes[j] += Math.abs(product);
          absolute[c] += weights[j] * Math.abs(value[kv + c]);
        }
        mean += weights[j] * products[j];
        meanSize += weights[j] * sizes[j];
        roundings += weights[j] * Math.abs(products[j]);
      }
    }
    if (output != null) {
      mean = 0;
      meanSize = 0;
      for (int c = 0; c < size; c++) {
        double product = gradient[c] * output.at(row, head * size + c);
        mean += product;
        meanSize += Math.abs(product);
      }
    }
    double squares = 0;
    for (int c = 0; c < size; c++) {
      squares += gradient[c] * absolute[c] * gradient[c] * absolute[c];
    }
    double meanError = errors.rounding * (roundings + CONFIDENCE * Math.sqrt(squares));
    double error = FP32_ERROR * (1 + Math.abs(Math.log(sum)));
    for (int j = 0; j < weights.length; j++) {
      if (weights[j] == 0 || (keptRow < 0 && keptKeys[j] < 0)) {
        continue;
      }
      double change = weights[j] * (products[j] - mean) * shape.scale;
      double changeError =
          weights[j] * shape.scale * (error * (sizes[j] + meanSize) + meanError)
              + ROUNDINGS * errors.rounding * Math.abs(change)
              + errors.least;
      double weightError = (error + ROUNDINGS * errors.rounding) * weights[j] + errors.least;
      int q = queryAt(row, head);
      int kv = keyAt(j, head);
      for (int c = 0; c < size; c++) {
        if (keptRow >= 0) {
          to.query.add(
              queryAt(keptRow, head) + c,
              change * key[kv + c],
              changeError * Math.abs(key[kv + c]));
        }
        if (keptKeys[j] >= 0) {
          int index = keyAt(keptKeys[j], head) + c;
          to.key.add(index, change * query[q + c], changeError * Math.abs(query[q + c]));
          to.value.add(index, weights[j] * gradient[c], weightError * Math.abs(gradient[c]));
        }
      }
    }
  }
}
