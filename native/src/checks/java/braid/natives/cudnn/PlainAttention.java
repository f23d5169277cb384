package braid.natives.cudnn;

import java.util.Optional;
import java.util.Random;

/// The problem with random numbers, solved by plain loops.
final class PlainAttention {
  /// Largest difference of an output or gradient, relative to the root mean square of the expected
  /// ones, to the number itself, and to the root of the squares of a gradient's terms, which cancel
  /// out. A number of bf16 has 8 significant bits, one of fp16 11. Grouped heads are rounded before
  /// they are summed.
  private static final double BF16_TOLERANCE = 2e-2;

  private static final double FP16_TOLERANCE = 3e-3;
  static final double STATISTICS_TOLERANCE = 1e-4;

  private final AttentionProblem problem;
  final double[] query;
  final double[] key;
  final double[] value;
  final double[] dOutput;
  final double[] output;
  final double[] stats;
  final Gradient dQuery;
  final Gradient dKey;
  final Gradient dValue;

  PlainAttention(AttentionProblem problem, long seed) {
    this.problem = problem;
    var random = new Random(seed);
    int numbers = problem.heads() * problem.headSize() * problem.rows();
    int kvNumbers = problem.kvHeads() * problem.headSize() * problem.keys();
    query = random(numbers, random);
    key = random(kvNumbers, random);
    value = random(kvNumbers, random);
    dOutput = random(numbers, random);
    output = new double[numbers];
    stats = new double[problem.heads() * problem.rows()];
    dQuery = new Gradient("query", numbers);
    dKey = new Gradient("key", kvNumbers);
    dValue = new Gradient("value", kvNumbers);
    for (int head = 0; head < problem.heads(); head++) {
      for (int row = 0; row < problem.rows(); row++) {
        solve(head, row);
      }
    }
  }

  /// The statistics row by row.
  double[] byRow() {
    var byRow = new double[stats.length];
    for (int i = 0; i < stats.length; i++) {
      byRow[i % problem.rows() * problem.heads() + i / problem.rows()] = stats[i];
    }
    return byRow;
  }

  /// Random numbers that both types represent.
  private static double[] random(int count, Random random) {
    return random.doubles(count, -2, 2).map(each -> Math.rint(each * 32) / 32).toArray();
  }

  private void solve(int head, int row) {
    int size = problem.headSize();
    int kvHead = head / (problem.heads() / problem.kvHeads());
    int q = (row * problem.heads() + head) * size;
    int last =
        problem.causal() ? Math.min(problem.keys() - 1, row + problem.shift()) : problem.keys() - 1;
    int first =
        problem.window() > 0 ? Math.max(0, row + problem.shift() - problem.window() + 1) : 0;
    var weights = new double[problem.keys()];
    double sum = 0;
    for (int j = first; j <= last; j++) {
      int k = (j * problem.kvHeads() + kvHead) * size;
      weights[j] = Math.exp(problem.scale() * dot(query, q, key, k));
      sum += weights[j];
    }
    stats[head * problem.rows() + row] = Math.log(sum);
    for (int j = first; j <= last; j++) {
      int k = (j * problem.kvHeads() + kvHead) * size;
      weights[j] /= sum;
      add(output, q, value, k, weights[j]);
      dValue.add(k, dOutput, q, size, weights[j]);
    }
    // cuDNN reads the output in 16 bits.
    double own = 0;
    for (int i = 0; i < size; i++) {
      own += dOutput[q + i] * CheckedMemory.round(problem.type(), output[q + i]);
    }
    for (int j = first; j <= last; j++) {
      int k = (j * problem.kvHeads() + kvHead) * size;
      double dScore = weights[j] * (dot(dOutput, q, value, k) - own) * problem.scale();
      dQuery.add(q, key, k, size, dScore);
      dKey.add(k, query, q, size, dScore);
    }
  }

  private double dot(double[] a, int at, double[] b, int from) {
    double sum = 0;
    for (int i = 0; i < problem.headSize(); i++) {
      sum += a[at + i] * b[from + i];
    }
    return sum;
  }

  private void add(double[] to, int at, double[] from, int begin, double factor) {
    for (int i = 0; i < problem.headSize(); i++) {
      to[at + i] += factor * from[begin + i];
    }
  }

  /// A gradient: sums of terms, and of their squares.
  static final class Gradient {
    private final String name;
    private final double[] sums;
    private final double[] squares;

    Gradient(String name, int count) {
      this.name = name;
      sums = new double[count];
      squares = new double[count];
    }

    /// Adds `size` numbers, times a factor.
    void add(int at, double[] from, int begin, int size, double factor) {
      for (int i = 0; i < size; i++) {
        double term = factor * from[begin + i];
        sums[at + i] += term;
        squares[at + i] += term * term;
      }
    }

    Optional<String> compare(double[] got, double tolerance) {
      return PlainAttention.compare("gradient of the " + name, got, sums, squares, tolerance);
    }
  }

  static double tolerance(AttentionProblem.Type type) {
    return type == AttentionProblem.Type.BF16 ? BF16_TOLERANCE : FP16_TOLERANCE;
  }

  static Optional<String> compare(String what, double[] got, double[] expected, double tolerance) {
    return compare(what, got, expected, new double[expected.length], tolerance);
  }

  static Optional<String> compare(
      String what, double[] got, double[] expected, double[] squaresOfTerms, double tolerance) {
    double squares = 0;
    for (double each : expected) {
      squares += each * each;
    }
    double bound = tolerance * Math.max(Math.sqrt(squares / expected.length), 1e-3);
    for (int i = 0; i < got.length; i++) {
      double most = bound + tolerance * (Math.abs(expected[i]) + Math.sqrt(squaresOfTerms[i]));
      if (!(Math.abs(got[i] - expected[i]) <= most)) {
        return Optional.of(
            "number %d of the %s is %s but should be %s, bound %.1e"
                .formatted(i, what, got[i], expected[i], most));
      }
    }
    return Optional.empty();
  }
}
