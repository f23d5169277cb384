package braid.internal.selftest;

import braid.Pipeline;
import braid.model.AttentionSpec;
import braid.model.DType;
import java.util.Arrays;
import java.util.List;

/// Gradients of attention by plain loops in double precision, over all queries and the keys that
/// each sees. Only those of some positions are kept.
final class AttentionGradientLoops {
  /// Roundings to a 16-bit type of a weight or change, of a block's gradient, and of a head's in a
  /// group.
  private static final int ROUNDINGS = 3;

  /// Size of a sum of independent roundings, of an output and of its part by a block, relative to
  /// the root of the sum of their squares.
  private static final int CONFIDENCE = 4;

  /// Error of a number that fp16 stores below its normal numbers.
  private static final double FP16_LEAST = 0x1p-24;

  private final AttentionSpec spec;
  private final AttentionCase.Inputs inputs;
  private final List<Integer> mine;

  /// Row of each position in the results; -1 for positions that are not kept.
  private final int[] rows;

  private final double rounding;
  private final double least;
  private final Sums query;
  private final Sums key;
  private final Sums value;

  /// Gradients of the rows that are kept, and bounds of their errors.
  @SuppressWarnings("ArrayRecordComponent") // Nobody compares them.
  private record Sums(double[] values, double[] bounds) {
    static Sums of(int count) {
      return new Sums(new double[count], new double[count]);
    }

    void add(int at, double value, double bound) {
      values[at] += value;
      bounds[at] += bound;
    }

    /// Adds what rounding the sum costs; without any product it is 0.
    double[] bounds(double rounding) {
      var all = bounds.clone();
      for (int i = 0; i < all.length; i++) {
        all[i] += all[i] == 0 ? 0 : 2 * rounding * Math.abs(values[i]) + AttentionCase.FP32_ERROR;
      }
      return all;
    }
  }

  AttentionGradientLoops(AttentionCase.Inputs inputs, List<Integer> mine) {
    this.spec = inputs.of().spec();
    this.inputs = inputs;
    this.mine = mine;
    this.rows = new int[spec.sequence()];
    Arrays.fill(rows, -1);
    for (int i = 0; i < mine.size(); i++) {
      rows[mine.get(i)] = i;
    }
    rounding = spec.dtype() == DType.FP32 ? 0 : spec.dtype().epsilon() / 2;
    least = spec.dtype() == DType.FP16 ? FP16_LEAST : Float.MIN_NORMAL;
    int numbers = mine.size() * spec.headSize();
    query = Sums.of(numbers * spec.heads());
    key = Sums.of(numbers * spec.kvHeads());
    value = Sums.of(numbers * spec.kvHeads());
    for (int position = 0; position < spec.sequence(); position++) {
      for (int head = 0; head < spec.heads(); head++) {
        add(position, head);
      }
    }
  }

  void compare(Pipeline gradient, String as, Findings findings) {
    within(as + "query gradient", query, gradient.queryGradient().toFloats(), findings);
    within(as + "key gradient", key, gradient.keyGradient().toFloats(), findings);
    within(as + "value gradient", value, gradient.valueGradient().toFloats(), findings);
  }

  private void within(String of, Sums sums, float[] got, Findings findings) {
    findings.within(of, sums.values, sums.bounds(rounding), got);
  }

  /// Adds the products of a query and the keys that it sees.
  private void add(int position, int head) {
    var weights = inputs.weights(position, head);
    double sum = Arrays.stream(weights).sum();
    boolean isMine = rows[position] >= 0;
    if (sum == 0
        || !(isMine || mine.stream().mapToInt(Integer::intValue).anyMatch(j -> weights[j] > 0))) {
      return;
    }
    int size = spec.headSize();
    int from = (position * spec.heads() + head) * size;
    var products = new double[weights.length];
    var sizes = new double[weights.length];
    var output = new double[size];
    double mean = 0;
    double meanSize = 0;
    // Of the mean, since the output that the backward pass reads is rounded, and so are its
    // weights.
    double roundings = 0;
    for (int j = 0; j < weights.length; j++) {
      if (weights[j] > 0) {
        double weight = weights[j] / sum;
        int kv = (j * spec.kvHeads() + head / spec.group()) * size;
        for (int c = 0; c < size; c++) {
          double ofValue = inputs.value()[kv + c];
          double product = inputs.outputGradient()[from + c] * ofValue;
          products[j] += product;
          sizes[j] += Math.abs(product);
          output[c] += weight * Math.abs(ofValue);
        }
        mean += weight * products[j];
        meanSize += weight * sizes[j];
        roundings += weight * Math.abs(products[j]);
      }
    }
    double squares = 0;
    for (int c = 0; c < size; c++) {
      double product = inputs.outputGradient()[from + c] * output[c];
      squares += product * product;
    }
    double meanError = rounding * (roundings + CONFIDENCE * Math.sqrt(squares));
    double error = AttentionCase.FP32_ERROR * (1 + Math.abs(Math.log(sum)));
    for (int j = 0; j < weights.length; j++) {
      if (weights[j] == 0 || !(isMine || rows[j] >= 0)) {
        continue;
      }
      double weight = weights[j] / sum;
      double change = weight * (products[j] - mean) * spec.scale();
      double changeError =
          weight * spec.scale() * (error * (sizes[j] + meanSize) + meanError)
              + ROUNDINGS * rounding * Math.abs(change)
              + least;
      double weightError = (error + ROUNDINGS * rounding) * weight + least;
      int kv = (j * spec.kvHeads() + head / spec.group()) * size;
      int toQuery = (rows[position] * spec.heads() + head) * size;
      int toKey = (rows[j] * spec.kvHeads() + head / spec.group()) * size;
      for (int c = 0; c < size; c++) {
        double ofQuery = inputs.query()[from + c];
        double ofKey = inputs.key()[kv + c];
        double ofOutput = inputs.outputGradient()[from + c];
        if (isMine) {
          query.add(toQuery + c, change * ofKey, changeError * Math.abs(ofKey));
        }
        if (rows[j] >= 0) {
          key.add(toKey + c, change * ofQuery, changeError * Math.abs(ofQuery));
          value.add(toKey + c, weight * ofOutput, weightError * Math.abs(ofOutput));
        }
      }
    }
  }
}
