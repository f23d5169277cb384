package braid.internal.pipeline;

import braid.model.AttentionSpec;
import braid.model.BackendKind;
import braid.model.DType;
import braid.model.Tokens;
import braid.schedule.Part;
import braid.schedule.Step;
import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Computes attention of this rank's tokens to the whole sequence in double precision, by plain
/// loops over the code that [AttentionSpec] shows, with an interval around each value that contains
/// every correct one. docs/verification.md derives the interval.
///
/// It needs keys and values of all ranks, so all ranks make it after the same run.
final class AttentionReference {
  /// Relative error of one operation in fp32.
  private static final double UNIT = 0x1p-24;

  /// Relative error of one addition in a tensor core, which cuts off.
  private static final double TENSOR_CORE_UNIT = 0x1p-22;

  /// Products that a tensor core adds before it cuts off.
  private static final int TENSOR_CORE_DEPTH = 16;

  /// Allowed deviation of a sum of roundings, in units of the roundings' walk.
  private static final double CONFIDENCE = 6;

  /// Roundings of a backend's attention. docs/verification.md has them as a table.
  ///
  /// @param product relative error of an addition of products
  /// @param depth products that are added before a sum is cut off; 0 if it is rounded to nearest
  /// @param tileKeys positions that are multiplied together, at least
  /// @param ofWeight roundings of a weight besides those that grow with its exponent, and of a
  ///   rescaling
  /// @param ofExponent roundings that grow with the exponent of a weight
  /// @param ofStatistic roundings of an LSE that another block continues or a merge reads
  /// @param ofMerge roundings of a merge besides those of its statistics
  /// @param ofScale roundings that all scores of a row share, which shift its LSE
  /// @param weight relative error of a weight that is multiplied with a value, and of a block's
  ///   output that is merged
  /// @param leastWeight error of either below the normal numbers
  record Arithmetic(
      double product,
      int depth,
      int tileKeys,
      int ofWeight,
      int ofExponent,
      int ofStatistic,
      int ofMerge,
      int ofScale,
      double weight,
      double leastWeight) {
    static Arithmetic of(BackendKind backend, DType dtype) {
      if (backend == BackendKind.HOST) {
        return new Arithmetic(UNIT, 0, 64, 3, 2, 2, 6, 0, 0, Float.MIN_NORMAL);
      }
      if (dtype == DType.FP32) {
        return new Arithmetic(UNIT, 0, 64, 8, 3, 5, 24, 3, 0, Float.MIN_NORMAL);
      }
      // Rounded to nearest in the type, by half of its epsilon or of its least positive number:
      // weights, and by cuDNN also the output of a block.
      return new Arithmetic(
          TENSOR_CORE_UNIT,
          TENSOR_CORE_DEPTH,
          32,
          8,
          3,
          5,
          24,
          3,
          dtype.epsilon(),
          dtype == DType.FP16 ? 0x1p-25 : Float.MIN_NORMAL);
    }

    /// Relative error of a sum of `count` products.
    double sum(int count) {
      double cutOff = depth == 0 ? 0 : (double) count / depth;
      return product * Math.min(count, CONFIDENCE * Math.sqrt(count) + cutOff);
    }
  }

  private final Plan plan;
  private final SequenceParts parts;
  private final AttentionSpec spec;
  private final Tokens tokens;
  private final Differences differences;
  private final Arithmetic arithmetic;

  /// Number of blocks that are added to the result of any row, at most.
  private final long blocks;

  /// By position, all heads.
  private final float[] keys;

  private final float[] values;

  /// Lengths of the keys, by position and head.
  private final double[] keyLengths;

  private final double[] weights;
  private final double[] exponents;
  private final double[] sums;
  private final double[] sizes;
  private final double[] exponentSizes;

  AttentionReference(Plan plan, Peers peers, Differences differences) {
    this.plan = plan;
    this.differences = differences;
    this.spec = (AttentionSpec) plan.problem();
    this.parts = new SequenceParts(plan, peers, spec);
    int rank = plan.place().rank();
    this.tokens = Tokens.of(spec, plan.place().size(), rank);
    this.arithmetic = Arithmetic.of(plan.backend().kind(), spec.dtype());
    // With divided heads, other ranks compute this rank's output.
    this.blocks =
        mostSteps(plan, step -> step instanceof Step.Attend || step instanceof Step.Merge);
    this.keys = parts.gathered(Part.KEY);
    this.values = parts.gathered(Part.VALUE);
    this.keyLengths = lengths();
    this.weights = new double[spec.positions()];
    this.exponents = new double[spec.positions()];
    this.sums = new double[spec.headSize()];
    this.sizes = new double[spec.headSize()];
    this.exponentSizes = new double[spec.headSize()];
  }

  /// Returns the number of these steps on the rank that has most.
  static long mostSteps(Plan plan, Predicate<Step> counted) {
    return IntStream.range(0, plan.place().size())
        .mapToLong(rank -> plan.schedule().steps(rank).stream().filter(counted).count())
        .max()
        .orElseThrow();
  }

  private double[] lengths() {
    var lengths = new double[spec.positions() * spec.kvHeads()];
    for (int i = 0; i < lengths.length; i++) {
      double square = 0;
      for (int j = i * spec.headSize(); j < (i + 1) * spec.headSize(); j++) {
        square += (double) keys[j] * keys[j];
      }
      lengths[i] = Math.sqrt(square);
    }
    return lengths;
  }

  /// Describes the first wrong value of this rank; empty if all are right. Without a tolerance each
  /// value must be within its own bound.
  Optional<String> compare(@Nullable Tolerance given) {
    var queries = parts.loaded(Part.QUERY);
    var outputs = parts.loaded(Part.OUTPUT);
    var statistics = parts.loaded(Part.LSE);
    for (int row = 0; row < tokens.count(); row++) {
      for (int head = 0; head < spec.heads(); head++) {
        int index = row * spec.heads() + head;
        var wrong = compare(row, head, queries, outputs, statistics[index], given);
        if (wrong.isPresent()) {
          return wrong;
        }
      }
    }
    return Optional.empty();
  }

  private Optional<String> compare(
      int row, int head, float[] queries, float[] outputs, float lse, @Nullable Tolerance given) {
    int headSize = spec.headSize();
    int query = (row * spec.heads() + head) * headSize;
    int kvHead = head / spec.group();
    int position = (int) tokens.at(row);
    int first = (int) spec.firstSeen(position);
    int end = (int) spec.lastSeen(position) + 1;
    if (first >= end) {
      return empty(row, head, position, Arrays.copyOfRange(outputs, query, query + headSize), lse);
    }
    double largest = Double.NEGATIVE_INFINITY;
    double smallest = Double.POSITIVE_INFINITY;
    double longest = 0;
    for (int j = first; j < end; j++) {
      int key = j * spec.kvHeads() + kvHead;
      double score = 0;
      for (int c = 0; c < headSize; c++) {
        score += (double) queries[query + c] * keys[key * headSize + c];
      }
      score *= spec.scale();
      weights[j] = score;
      largest = Math.max(largest, score);
      smallest = Math.min(smallest, score);
      longest = Math.max(longest, keyLengths[key]);
    }
    double sum = 0;
    for (int j = first; j < end; j++) {
      exponents[j] = largest - weights[j];
      weights[j] = Math.exp(-exponents[j]);
      sum += weights[j];
    }
    Arrays.fill(sums, 0);
    Arrays.fill(sizes, 0);
    Arrays.fill(exponentSizes, 0);
    double exponent = 0;
    double largestValue = 0;
    for (int j = first; j < end; j++) {
      double share = weights[j] / sum;
      exponent += share * exponents[j];
      int value = (j * spec.kvHeads() + kvHead) * headSize;
      for (int c = 0; c < headSize; c++) {
        double each = share * values[value + c];
        sums[c] += each;
        sizes[c] += Math.abs(each);
        exponentSizes[c] += exponents[j] * Math.abs(each);
        largestValue = Math.max(largestValue, Math.abs(values[value + c]));
      }
    }
    int seen = end - first;
    double expectedLse = largest + Math.log(sum);
    double scoreError =
        arithmetic.sum(headSize + 1) * spec.scale() * length(queries, query) * longest;
    double statisticSize = Math.max(Math.abs(largest), Math.abs(smallest)) + Math.log(seen);
    double rescalings = (double) Math.ceilDiv(seen, arithmetic.tileKeys()) + blocks;
    double weightError =
        scoreError
            + UNIT * arithmetic.ofWeight() * (1 + rescalings)
            + UNIT * blocks * (arithmetic.ofStatistic() * statisticSize + arithmetic.ofMerge());
    double sumError = arithmetic.sum(seen);
    double least = Float.MIN_NORMAL + arithmetic.leastWeight() * (1 + seen * largestValue);
    for (int c = 0; c < headSize; c++) {
      double error =
          (2 * (weightError + sumError) + arithmetic.weight()) * sizes[c]
              + arithmetic.ofExponent() * UNIT * (exponentSizes[c] + exponent * sizes[c])
              + UNIT * Math.abs(sums[c])
              + least;
      if (!allows(sums[c], error, spec.dtype(), outputs[query + c], given, differences)) {
        return wrong(
            "output[%d, %d]".formatted(row, head * headSize + c),
            position,
            head,
            outputs[query + c],
            sums[c],
            error,
            given);
      }
    }
    double lseError =
        weightError
            + sumError
            + arithmetic.ofExponent() * UNIT * exponent
            + 2 * UNIT * (Math.abs(expectedLse) + 1)
            + arithmetic.ofScale() * UNIT * statisticSize;
    return allows(expectedLse, lseError, DType.FP32, lse, given, differences)
        ? Optional.empty()
        : wrong(
            "lse[%d, %d]".formatted(row, head), position, head, lse, expectedLse, lseError, given);
  }

  /// Describes the first wrong value of a row that sees nothing: its output is 0, its LSE −∞.
  private Optional<String> empty(int row, int head, int position, float[] output, float lse) {
    for (int c = 0; c < output.length; c++) {
      if (output[c] != 0) {
        var place = "output[%d, %d]".formatted(row, head * spec.headSize() + c);
        return wrong(place, position, head, output[c], 0, 0, null);
      }
    }
    double none = Double.NEGATIVE_INFINITY;
    differences.addExact(output.length + 1L);
    return lse == none
        ? Optional.empty()
        : wrong("lse[%d, %d]".formatted(row, head), position, head, lse, none, 0, null);
  }

  private double length(float[] queries, int query) {
    double square = 0;
    for (int c = query; c < query + spec.headSize(); c++) {
      square += (double) queries[c] * queries[c];
    }
    return Math.sqrt(square);
  }

  /// Returns whether a value is right, and then adds its difference.
  static boolean allows(
      double expected,
      double error,
      DType dtype,
      float got,
      @Nullable Tolerance given,
      Differences differences) {
    double difference = Math.abs(got - expected);
    double allowed;
    if (given != null) {
      allowed = given.allowed(expected);
      if (!(difference <= allowed)) {
        return false;
      }
    } else if (!(Math.abs(expected) + error < Float.MAX_VALUE)) {
      // Overflows of fp32 depend on the order of its operations.
      difference = 0;
      allowed = 0;
    } else {
      float low = dtype.round(Math.nextDown((float) (expected - error)));
      float high = dtype.round(Math.nextUp((float) (expected + error)));
      if (!(low <= got && got <= high)) {
        return false;
      }
      allowed = Math.max(high - expected, expected - low);
    }
    differences.add(1, difference, allowed);
    return true;
  }

  private Optional<String> wrong(
      String place,
      int position,
      int head,
      float got,
      double expected,
      double error,
      @Nullable Tolerance given) {
    return wrong(plan.place().rank(), place, position, head, got, expected, error, given);
  }

  static Optional<String> wrong(
      int rank,
      String place,
      int position,
      int head,
      float got,
      double expected,
      double error,
      @Nullable Tolerance given) {
    return Optional.of(
        "rank %d: %s must be %s %s but was %s; it is the first wrong value, of position %d and head %d"
            .formatted(
                rank,
                place,
                (float) expected,
                given == null ? String.format(Locale.ROOT, "within %.3g", error) : given,
                got,
                position,
                head));
  }
}
