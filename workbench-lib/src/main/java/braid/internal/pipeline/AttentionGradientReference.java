package braid.internal.pipeline;

import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.Tokens;
import braid.schedule.Part;
import braid.schedule.Step;
import java.util.Arrays;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Computes the gradients of this rank's tokens in double precision, by plain loops over the code
/// that [AttentionGradientSpec] shows, with a bound of the error of each. docs/verification.md
/// derives the bound.
///
/// It needs the inputs of all ranks, so all ranks call it after the same run.
final class AttentionGradientReference {
  /// Relative error of one operation in fp32.
  private static final double UNIT = 0x1p-24;

  /// Roundings of a weight besides those of its exponent.
  private static final int WEIGHT_ROUNDINGS = 8;

  private final Plan plan;
  private final SequenceParts parts;
  private final Differences differences;
  private final AttentionReference.Arithmetic arithmetic;

  /// Relative error of numbers that a GPU rounds to a 16-bit type: the factors of a gradient, and
  /// by cuDNN its part by a head of a group and its part by a block.
  private final double narrow;

  private final AttentionSpec spec;
  private final int headSize;
  private final Tokens ownQueries;
  private final Tokens ownKeys;

  /// Number of blocks and received sums that are added to any gradient, at most.
  private final long blocks;

  // By position, all heads.
  private final float[] queries;
  private final float[] keys;
  private final float[] values;
  private final float[] outputs;
  private final float[] statistics;
  private final float[] outputGradients;

  /// The pair of a query and a key of one head.
  private double weight;

  private double weightError;
  private double change;
  private double changeError;

  /// Gradients of a row, and of a key and a value.
  private final Sum first;

  private final Sum second;

  /// Sum of products of a head's numbers, with the bound of its error.
  private final class Sum {
    private final double[] sums = new double[headSize];
    private final double[] sizes = new double[headSize];
    private final double[] errors = new double[headSize];

    void begin() {
      Arrays.fill(sums, 0);
      Arrays.fill(sizes, 0);
      Arrays.fill(errors, 0);
    }

    void add(double factor, double error, float[] numbers, int index) {
      for (int c = 0; c < headSize; c++) {
        double product = factor * numbers[index + c];
        sums[c] += product;
        sizes[c] += Math.abs(product);
        errors[c] += error * Math.abs(numbers[index + c]);
      }
    }

    /// @param count number of products
    double error(int c, long count) {
      return errors[c]
          + (arithmetic.sum(Math.toIntExact(count + blocks)) + narrow) * sizes[c]
          + UNIT * Math.abs(sums[c])
          + (1 + count) * arithmetic.leastWeight();
    }
  }

  AttentionGradientReference(Plan plan, Peers peers, Differences differences) {
    this.plan = plan;
    this.differences = differences;
    this.spec = ((AttentionGradientSpec) plan.problem()).forward();
    this.headSize = spec.headSize();
    this.arithmetic = AttentionReference.Arithmetic.of(plan.backend().kind(), spec.dtype());
    this.narrow = arithmetic.weight() * (spec.group() > 1 ? 1.5 : 1);
    this.parts = new SequenceParts(plan, peers, spec);
    int rank = plan.place().rank();
    this.ownQueries = Tokens.of(spec, plan.place().size(), rank);
    this.ownKeys = Tokens.ofKeys(spec, plan.place().size(), rank);
    // Other ranks compute a part of this rank's gradients, or all.
    this.blocks =
        AttentionReference.mostSteps(
            plan, step -> step instanceof Step.AttendGradient || step instanceof Step.Reduce);
    this.queries = parts.gathered(Part.QUERY);
    this.keys = parts.gathered(Part.KEY);
    this.values = parts.gathered(Part.VALUE);
    this.outputs = parts.gathered(Part.OUTPUT);
    this.statistics = parts.gathered(Part.LSE);
    this.outputGradients = parts.gathered(Part.OUTPUT_GRADIENT);
    this.first = new Sum();
    this.second = new Sum();
  }

  /// Describes the first wrong value of this rank; empty if all are right. Without a tolerance each
  /// value must be within its own bound.
  Optional<String> compare(@Nullable Tolerance given) {
    var queryGradients = parts.loaded(Part.QUERY_GRADIENT);
    var keyGradients = parts.loaded(Part.KEY_GRADIENT);
    var valueGradients = parts.loaded(Part.VALUE_GRADIENT);
    for (int row = 0; row < Math.max(ownQueries.count(), ownKeys.count()); row++) {
      for (int head = 0; head < spec.heads() && ownQueries.has(row); head++) {
        long pairs = ofQuery((int) ownQueries.at(row), head);
        var wrong =
            wrong(
                Part.QUERY_GRADIENT, row, head, spec.heads(), queryGradients, first, pairs, given);
        if (wrong.isPresent()) {
          return wrong;
        }
      }
      for (int head = 0; head < spec.kvHeads() && ownKeys.has(row); head++) {
        long pairs = ofKey((int) ownKeys.at(row), head);
        int heads = spec.kvHeads();
        var wrong = wrong(Part.KEY_GRADIENT, row, head, heads, keyGradients, first, pairs, given);
        if (wrong.isEmpty()) {
          wrong =
              wrong(Part.VALUE_GRADIENT, row, head, heads, valueGradients, second, pairs, given);
        }
        if (wrong.isPresent()) {
          return wrong;
        }
      }
    }
    return Optional.empty();
  }

  /// Computes the gradient of a query; returns the number of keys that it sees.
  private long ofQuery(int position, int head) {
    int firstKey = (int) spec.firstSeen(position);
    int end = (int) spec.lastSeen(position) + 1;
    first.begin();
    for (int j = firstKey; j < end; j++) {
      pair(position, head, j);
      first.add(change, changeError, keys, key(j, head / spec.group()));
    }
    return Math.max(0, end - firstKey);
  }

  /// Computes the gradients of a key and a value; returns the number of queries that see them.
  private long ofKey(int position, int kvHead) {
    int firstQuery = (int) spec.firstSeeing(position);
    int end = (int) spec.lastSeeing(position) + 1;
    first.begin();
    second.begin();
    for (int head = kvHead * spec.group(); head < (kvHead + 1) * spec.group(); head++) {
      for (int i = firstQuery; i < end; i++) {
        pair(i, head, position);
        first.add(change, changeError, queries, query(i, head));
        second.add(weight, weightError, outputGradients, query(i, head));
      }
    }
    return (long) Math.max(0, end - firstQuery) * spec.group();
  }

  private int query(int position, int head) {
    return (position * spec.heads() + head) * headSize;
  }

  private int key(int position, int kvHead) {
    return (position * spec.kvHeads() + kvHead) * headSize;
  }

  /// Computes the weight of a key for a query, and the gradient of their score.
  private void pair(int i, int head, int j) {
    int query = query(i, head);
    int key = key(j, head / spec.group());
    double score = 0;
    double byValue = 0;
    double byOutput = 0;
    double querySize = 0;
    double keySize = 0;
    double valueSize = 0;
    double outputSize = 0;
    double gradientSize = 0;
    for (int c = 0; c < headSize; c++) {
      double q = queries[query + c];
      double k = keys[key + c];
      double v = values[key + c];
      double out = outputs[query + c];
      double gradient = outputGradients[query + c];
      score += q * k;
      byValue += gradient * v;
      byOutput += gradient * out;
      querySize += q * q;
      keySize += k * k;
      valueSize += v * v;
      outputSize += out * out;
      gradientSize += gradient * gradient;
    }
    double exponent = score * spec.scale() - statistics[i * spec.heads() + head];
    weight = Math.exp(exponent);
    double scoreError =
        arithmetic.sum(headSize + 1) * spec.scale() * Math.sqrt(querySize * keySize);
    double sizes = Math.abs(score * spec.scale()) + Math.abs(exponent - score * spec.scale());
    double exponentError =
        UNIT * (Math.abs(exponent) + WEIGHT_ROUNDINGS + arithmetic.ofScale() * sizes);
    // A weight below the normal numbers is 0.
    weightError = weight * Math.expm1(scoreError + exponentError) + arithmetic.leastWeight();
    double difference = byValue - byOutput;
    double differenceError =
        arithmetic.sum(headSize + 1)
                * Math.sqrt(gradientSize)
                * (Math.sqrt(valueSize) + Math.sqrt(outputSize))
            + UNIT * Math.abs(difference);
    change = spec.scale() * weight * difference;
    changeError =
        spec.scale()
                * ((weight + weightError) * differenceError + weightError * Math.abs(difference))
            + 2 * UNIT * Math.abs(change)
            + arithmetic.leastWeight();
  }

  private Optional<String> wrong(
      Part part,
      int row,
      int head,
      int heads,
      float[] all,
      Sum sum,
      long pairs,
      @Nullable Tolerance given) {
    for (int c = 0; c < headSize; c++) {
      float got = all[(row * heads + head) * headSize + c];
      double error = sum.error(c, pairs);
      if (!AttentionReference.allows(sum.sums[c], error, spec.dtype(), got, given, differences)) {
        return AttentionReference.wrong(
            plan.place().rank(),
            "%s[%d, %d]".formatted(part, row, head * headSize + c),
            (int) (part == Part.QUERY_GRADIENT ? ownQueries : ownKeys).at(row),
            head,
            got,
            sum.sums[c],
            error,
            given);
      }
    }
    return Optional.empty();
  }
}
