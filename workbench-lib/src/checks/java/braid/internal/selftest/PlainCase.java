package braid.internal.selftest;

import braid.model.ChunkOrder;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Place;
import java.util.Arrays;
import java.util.function.Function;
import java.util.function.IntFunction;

/// Expected results of a pipeline, computed by plain loops over every rank's inputs. Shares no code
/// with the pipeline under test.
final class PlainCase {
  /// Operands that ranks start with, each with its own seed.
  enum Operand {
    INPUT(1),
    WEIGHT(2),
    BIAS(3),
    BESIDE(4),
    OUTPUT(5);

    private final int seed;

    Operand(int seed) {
      this.seed = seed;
    }

    int seed() {
      return seed;
    }
  }

  private final GemmSpec spec;
  private final Overlap tuning;
  private final Place place;

  /// Numbers by operand, rank and size.
  private final Function<Operand, IntFunction<IntFunction<float[]>>> given;

  PlainCase(
      GemmSpec spec,
      Overlap tuning,
      Place place,
      Function<Operand, IntFunction<IntFunction<float[]>>> given) {
    this.spec = spec;
    this.tuning = tuning;
    this.place = place;
    this.given = given;
  }

  private record Range(int start, int length) {}

  private static Range part(int total, int parts, int index) {
    // Distributes rows one by one.
    var lengths = new int[parts];
    for (int dealt = 0; dealt < total; dealt++) {
      lengths[dealt % parts]++;
    }
    int start = 0;
    for (int before = 0; before < index; before++) {
      start += lengths[before];
    }
    return new Range(start, lengths[index]);
  }

  private float[] given(Operand operand, int rank, int size) {
    return given.apply(operand).apply(rank).apply(size);
  }

  /// Returns a rank's matrix, by rows.
  private float[][] matrix(Operand operand, int rank, int rows, int columns, boolean transposed) {
    var stored = given(operand, rank, rows * columns);
    var matrix = new float[rows][columns];
    for (int i = 0; i < rows; i++) {
      for (int j = 0; j < columns; j++) {
        matrix[i][j] = transposed ? stored[j * rows + i] : stored[i * columns + j];
      }
    }
    return matrix;
  }

  private float[][] input(int rank, int rows, int columns) {
    return matrix(Operand.INPUT, rank, rows, columns, spec.has(Feature.TRANSPOSED_INPUT));
  }

  private float[][] weight(int rank, int rows, int columns) {
    return matrix(Operand.WEIGHT, rank, rows, columns, spec.has(Feature.TRANSPOSED_WEIGHT));
  }

  private static float[][] times(float[][] a, float[][] b) {
    var product = new float[a.length][b[0].length];
    for (int i = 0; i < a.length; i++) {
      for (int j = 0; j < b[0].length; j++) {
        for (int l = 0; l < b.length; l++) {
          product[i][j] += a[i][l] * b[l][j];
        }
      }
    }
    return product;
  }

  /// Returns the output before activation and rounding. A sum of several ranks' products is rounded
  /// already, as a collective returns it.
  float[] output() {
    return output(false);
  }

  /// Returns the output of a library that rounds products before it adds them to an output in 16
  /// bits.
  float[] outputOfRoundedProducts() {
    return output(true);
  }

  private float[] output(boolean roundsProducts) {
    var product =
        switch (spec.pattern()) {
          case ALL_GATHER_GEMM -> {
            var columns = part(spec.n(), place.size(), place.rank());
            yield scaled(times(gathered(), weight(place.rank(), spec.k(), columns.length)));
          }
          case GEMM_REDUCE_SCATTER -> {
            var rows = part(spec.m(), place.size(), place.rank());
            yield Arrays.copyOfRange(sum(), rows.start, rows.start + rows.length);
          }
          case GEMM_ALL_REDUCE -> sum();
          case GEMM_BESIDE_ALL_GATHER, GEMM_BESIDE_REDUCE_SCATTER ->
              scaled(
                  times(
                      input(place.rank(), spec.m(), spec.k()),
                      weight(place.rank(), spec.k(), spec.n())));
        };
    int columns = product[0].length;
    var before =
        spec.has(Feature.ACCUMULATE)
            ? given(Operand.OUTPUT, place.rank(), product.length * columns)
            : new float[product.length * columns];
    var bias = spec.has(Feature.BIAS) ? given(Operand.BIAS, 0, columns) : new float[columns];
    var output = new float[product.length * columns];
    for (int i = 0; i < output.length; i++) {
      float value = product[i / columns][i % columns];
      float added = roundsProducts ? rounded(spec.outputDtype(), value) : value;
      output[i] = added + before[i] + bias[i % columns];
    }
    return output;
  }

  /// Returns the output before rounding. GELU is of the rounded pre-activation.
  float[] activated() {
    var output = output();
    if (spec.has(Feature.GELU)) {
      for (int i = 0; i < output.length; i++) {
        output[i] = (float) gelu(rounded(beside(spec.outputDtype()), output[i]));
      }
    }
    return output;
  }

  private float[][] gathered() {
    var whole = new float[spec.m()][];
    for (int rank = 0; rank < place.size(); rank++) {
      var rows = part(spec.m(), place.size(), rank);
      var shard = input(rank, rows.length, spec.k());
      System.arraycopy(shard, 0, whole, rows.start, rows.length);
    }
    return whole;
  }

  /// Applies the scale, a power of two, so that it rounds no number.
  private float[][] scaled(float[][] product) {
    float scale = spec.isScaled() ? PipelineCase.INPUT_SCALE * PipelineCase.WEIGHT_SCALE : 1;
    for (var row : product) {
      for (int j = 0; j < row.length; j++) {
        row[j] *= scale;
      }
    }
    return product;
  }

  /// Returns the sum of all ranks' products. Each product travels in the output's type, or in BF16.
  /// The sum is rounded to it once, but in a ring at every hop, and in two levels first of each
  /// group.
  private float[][] sum() {
    var type = beside(spec.outputDtype());
    var products = new float[place.size()][][];
    for (int rank = 0; rank < place.size(); rank++) {
      int depth = part(spec.k(), place.size(), rank).length;
      products[rank] = scaled(times(input(rank, spec.m(), depth), weight(rank, depth, spec.n())));
    }
    int group = tuning.groupRanks() == 0 ? place.size() : tuning.groupRanks();
    var sum = new float[spec.m()][spec.n()];
    for (int i = 0; i < sum.length; i++) {
      for (int j = 0; j < spec.n(); j++) {
        float value = 0;
        float before = 0;
        var order = order(i);
        for (int added = 1; added <= order.length; added++) {
          value += rounded(type, products[order[added - 1]][i][j]);
          if (tuning.method() == Method.RING) {
            value = rounded(type, value);
          } else if (tuning.method() == Method.TWO_LEVEL && added % group == 0) {
            before += rounded(type, value);
            value = 0;
          }
        }
        sum[i][j] = rounded(type, before + value);
      }
    }
    return sum;
  }

  /// Returns the ranks in the order in which their products of a row are added: a ring ends with
  /// its owner.
  private int[] order(int row) {
    int ranks = place.size();
    var order = new int[ranks];
    int owner = 0;
    for (int rank = 0; rank < ranks; rank++) {
      var rows = part(spec.m(), ranks, rank);
      owner = row >= rows.start && row < rows.start + rows.length ? rank : owner;
    }
    int direction = tuning.order() == ChunkOrder.PREVIOUS_FIRST ? -1 : 1;
    for (int i = 0; i < ranks; i++) {
      order[i] =
          tuning.method() == Method.RING ? Math.floorMod(owner + direction * (i + 1), ranks) : i;
    }
    return order;
  }

  /// Returns the gathered input in its storage order.
  float[] wholeInput() {
    var whole = gathered();
    var flat = new float[spec.m() * spec.k()];
    for (int row = 0; row < spec.m(); row++) {
      for (int column = 0; column < spec.k(); column++) {
        int index =
            spec.has(Feature.TRANSPOSED_INPUT) ? column * spec.m() + row : row * spec.k() + column;
        flat[index] = whole[row][column];
      }
    }
    return flat;
  }

  float[] besideOutput() {
    int elements = Math.toIntExact(spec.besideElements());
    boolean gathers = spec.pattern() == GemmSpec.Pattern.GEMM_BESIDE_ALL_GATHER;
    var all = new float[elements];
    for (int rank = 0; rank < place.size(); rank++) {
      if (gathers) {
        var range = part(elements, place.size(), rank);
        System.arraycopy(
            given(Operand.BESIDE, rank, range.length), 0, all, range.start, range.length);
      } else {
        var addends = given(Operand.BESIDE, rank, elements);
        for (int i = 0; i < elements; i++) {
          all[i] += addends[i];
        }
      }
    }
    var mine = part(elements, place.size(), place.rank());
    return gathers ? all : Arrays.copyOfRange(all, mine.start, mine.start + mine.length);
  }

  /// Returns the type of partial sums, bias and pre-activation of an output.
  static DType beside(DType output) {
    return output == DType.FP8_E4M3 || output == DType.FP8_E5M2 ? DType.BF16 : output;
  }

  /// Returns the factor from an output's values to the stored numbers.
  static float outScale(GemmSpec spec) {
    return spec.outputDtype().isFp8() ? 1 / PipelineCase.OUTPUT_SCALE : 1;
  }

  /// Returns the stored numbers of an output.
  static float[] stored(GemmSpec spec, float[] values) {
    var scaled = new float[values.length];
    for (int i = 0; i < values.length; i++) {
      scaled[i] = values[i] * outScale(spec);
    }
    return rounded(spec.outputDtype(), scaled);
  }

  static double gelu(double x) {
    return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * Math.pow(x, 3))));
  }

  static float[] rounded(DType dtype, float[] values) {
    var rounded = new float[values.length];
    for (int i = 0; i < values.length; i++) {
      rounded[i] = rounded(dtype, values[i]);
    }
    return rounded;
  }

  /// Rounds to nearest, ties to even, in the type's significant bits, and saturates at its largest
  /// number; for magnitudes in the type's normal range, such as sums of integers.
  static float rounded(DType dtype, float value) {
    int significantBits =
        switch (dtype) {
          case FP32, TF32 -> 24;
          case FP16 -> 11;
          case BF16 -> 8;
          case FP8_E4M3 -> 4;
          case FP8_E5M2 -> 3;
        };
    if (value == 0) {
      return value;
    }
    double unit = Math.scalb(1.0, Math.getExponent(value) - significantBits + 1);
    float rounded = (float) (Math.rint(value / unit) * unit);
    return switch (dtype) {
      case FP32, TF32, BF16 -> rounded;
      case FP16 ->
          Math.abs(rounded) > 65504 ? Math.copySign(Float.POSITIVE_INFINITY, rounded) : rounded;
      case FP8_E4M3 -> Math.clamp(rounded, -448, 448);
      case FP8_E5M2 -> Math.clamp(rounded, -57344, 57344);
    };
  }

  static float largest(float[] values) {
    float largest = 0;
    for (float value : values) {
      largest = Math.max(largest, Math.abs(value));
    }
    return largest;
  }
}
