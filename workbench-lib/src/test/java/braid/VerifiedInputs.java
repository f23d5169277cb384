package braid;

import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.GemmSpec.Pattern;
import braid.schedule.Shares;
import braid.schedule.Slice;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/// Inputs of every rank for verification, generated from a seed, so that each rank knows the
/// others'; and plain sums of them in fp64.
record VerifiedInputs(GemmSpec spec, int ranks, Kind kind, long seed) {
  static final float INPUT_SCALE = 0.3f;
  static final float WEIGHT_SCALE = 1;

  /// Scale of FP8 outputs; not a power of two, so that it rounds.
  static final float OUTPUT_SCALE = 0.7f;

  /// Distributions of the numbers.
  enum Kind {
    GAUSSIAN,
    /// Magnitudes over 20 binades, per element.
    WIDE,
    /// Products that almost cancel, one by one or by halves.
    CANCELLING,
    /// The inputs of a new pipeline.
    SMALL_INTEGERS,
    LARGER_INTEGERS,
    /// Constant factors, whose roundings do not average out.
    CONSTANT,
    /// Sums near the largest fp16 number, and beyond.
    NEAR_OVERFLOW,
    /// Gaussian with a few infinities and NaNs.
    SPECIAL
  }

  /// A rank's left and right factor.
  @SuppressWarnings("ArrayRecordComponent") // Nobody compares them.
  record Sides(float[][] left, float[][] right) {}

  Shares sizes(int rank) {
    return Shares.of(spec, ranks, rank);
  }

  private SplittableRandom random(int rank, int operand) {
    return new SplittableRandom(seed + 1_000L * rank + operand);
  }

  /// Returns a rank's factors, rounded to the type.
  Sides held(int rank) {
    var random = random(rank, 1);
    var sizes = sizes(rank);
    int depth = (int) sizes.inner().length();
    var left = values(random, (int) sizes.input().length(), depth);
    var right = values(random, depth, (int) sizes.columns().length());
    if (kind == Kind.CANCELLING) {
      boolean halves = new SplittableRandom(seed).nextBoolean();
      for (int l = 0; l < depth / 2; l++) {
        int one = halves ? l : 2 * l;
        int other = halves ? l + depth / 2 : 2 * l + 1;
        right[other] = right[one].clone();
        for (var row : left) {
          row[other] = -row[one] * (1 + 0.01f * (float) random.nextGaussian());
        }
      }
    }
    if (kind == Kind.SPECIAL) {
      spoil(random, left);
      spoil(random, right);
    }
    round(left);
    round(right);
    return new Sides(left, right);
  }

  private void spoil(SplittableRandom random, float[][] values) {
    float[] special = {Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY};
    for (int i = random.nextInt(3); i > 0 && values.length > 0; i--) {
      var row = values[random.nextInt(values.length)];
      row[random.nextInt(row.length)] = special[random.nextInt(3)];
    }
  }

  private void round(float[][] values) {
    for (var row : values) {
      for (int i = 0; i < row.length; i++) {
        row[i] = spec.dtype().round(row[i]);
      }
    }
  }

  private float[][] values(SplittableRandom random, int rows, int columns) {
    var all = new SplittableRandom(seed);
    float constant = (float) all.nextDouble(-1, 1);
    double limit = Math.sqrt(all.nextDouble(2e4, 2e5) / Math.sqrt(spec.k()));
    boolean narrow = spec.dtype() == DType.FP16 || spec.dtype().isFp8();
    var values = new float[rows][columns];
    for (var row : values) {
      for (int i = 0; i < columns; i++) {
        row[i] =
            switch (kind) {
              case GAUSSIAN, CANCELLING, SPECIAL -> (float) random.nextGaussian();
              case WIDE ->
                  (float) random.nextGaussian()
                      * Math.scalb(1f, narrow ? random.nextInt(-8, 4) : random.nextInt(-10, 11));
              case SMALL_INTEGERS -> random.nextInt(-3, 4);
              case LARGER_INTEGERS -> random.nextInt(-40, 41);
              case CONSTANT -> constant;
              case NEAR_OVERFLOW -> (float) (limit * random.nextGaussian());
            };
      }
    }
    return values;
  }

  /// Fills the tensors that a run of a rank reads and adds to.
  void fill(Pipeline pipe) {
    int rank = pipe.group().rank();
    var sides = held(rank);
    pipe.input().copyFrom(stored(sides.left(), spec.has(Feature.TRANSPOSED_INPUT)));
    pipe.weight().copyFrom(stored(sides.right(), spec.has(Feature.TRANSPOSED_WEIGHT)));
    if (spec.has(Feature.BIAS)) {
      pipe.bias().copyFrom(line(0, 2, pipe.bias()));
    }
    if (spec.has(Feature.ACCUMULATE)) {
      // An all-reduce adds to an output that is equal on all ranks.
      int alike = spec.pattern() == Pattern.GEMM_ALL_REDUCE ? 0 : rank;
      pipe.output().copyFrom(line(alike, 3, pipe.output()));
    }
    if (spec.pattern().beside()) {
      pipe.besideInput().copyFrom(beside(rank));
    }
  }

  /// Returns a rank's data for the communication beside the multiplication.
  float[] beside(int rank) {
    boolean gathers = spec.pattern() == Pattern.GEMM_BESIDE_ALL_GATHER;
    int total = Math.toIntExact(spec.besideElements());
    return line(rank, 4, gathers ? (int) Slice.of(total, ranks, rank).length() : total);
  }

  private float[] line(int rank, int operand, TensorView like) {
    return line(rank, operand, Math.toIntExact(like.shape().stream().reduce(1L, (a, b) -> a * b)));
  }

  private float[] line(int rank, int operand, int count) {
    return values(random(rank, operand), 1, count)[0];
  }

  private static float[] stored(float[][] values, boolean transposed) {
    int rows = values.length;
    int columns = rows == 0 ? 0 : values[0].length;
    var stored = new float[rows * columns];
    for (int i = 0; i < rows; i++) {
      for (int j = 0; j < columns; j++) {
        stored[transposed ? j * rows + i : i * columns + j] = values[i][j];
      }
    }
    return stored;
  }

  double scale() {
    return spec.dtype().isFp8() ? INPUT_SCALE * WEIGHT_SCALE : 1;
  }

  /// Returns the contribution of rank `source` to the output of rank `receiver`: products of the
  /// depths from `first` to before `end`, or their magnitudes.
  double[] products(int source, int receiver, int first, int end, boolean absolute) {
    boolean gathers = spec.pattern() == Pattern.ALL_GATHER_GEMM;
    var left = gathers ? gathered() : held(source).left();
    var right = held(gathers ? receiver : source).right();
    int firstRow = (int) sizes(receiver).output().start();
    int rows = (int) sizes(receiver).output().length();
    int width = (int) sizes(gathers ? receiver : source).columns().length();
    var products = new double[rows * width];
    for (int i = 0; i < rows; i++) {
      var row = left[firstRow + i];
      for (int j = 0; j < width; j++) {
        double sum = 0;
        for (int l = first; l < end; l++) {
          double one = (double) row[l] * right[l][j];
          sum += absolute ? Math.abs(one) : one;
        }
        products[i * width + j] = scale() * sum;
      }
    }
    return products;
  }

  private float[][] gathered() {
    return IntStream.range(0, ranks)
        .mapToObj(rank -> held(rank).left())
        .flatMap(Arrays::stream)
        .toArray(float[][]::new);
  }
}
