package braid.schedule;

import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.schedule.Buffer.Shape;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;

/// Tensors of a problem: the names of its schedule's ports.
public enum Part {
  /// This rank's part of the input.
  INPUT,
  /// This rank's part of the weight.
  WEIGHT,
  /// A number for each of this rank's columns.
  BIAS,
  /// This rank's part of what is communicated beside the multiplication.
  BESIDE_INPUT,
  /// This rank's part of the output.
  OUTPUT,
  /// The values that the output is the GELU of.
  PRE_ACTIVATION,
  /// The input of all ranks.
  GATHERED_INPUT,
  /// The result of the communication beside the multiplication.
  BESIDE_OUTPUT;

  /// The buffer of the largest size of any number of an FP8 output; it is no port.
  public static final String AMAX = "amax";

  /// Whether it is a line of numbers and no matrix.
  public boolean isLine() {
    return switch (this) {
      case BIAS, BESIDE_INPUT, BESIDE_OUTPUT -> true;
      case INPUT, WEIGHT, OUTPUT, PRE_ACTIVATION, GATHERED_INPUT -> false;
    };
  }

  /// Whether users write it and runs read it.
  public boolean given() {
    return switch (this) {
      case INPUT, WEIGHT, BIAS, BESIDE_INPUT -> true;
      case OUTPUT, PRE_ACTIVATION, GATHERED_INPUT, BESIDE_OUTPUT -> false;
    };
  }

  /// The array that holds each rank's part of that problem.
  Buffer buffer(GemmSpec spec, int ranks, boolean symmetric) {
    return new Buffer(
        port(),
        dtype(spec),
        IntStream.range(0, ranks).mapToObj(rank -> shape(spec, ranks, rank)).toList(),
        symmetric,
        ((this == INPUT || this == GATHERED_INPUT) && spec.has(Feature.TRANSPOSED_INPUT))
            || (this == WEIGHT && spec.has(Feature.TRANSPOSED_WEIGHT)));
  }

  /// The sizes of a rank's tensor of that problem, as it is stored.
  public List<Long> sizes(GemmSpec spec, int ranks, int rank) {
    var buffer = buffer(spec, ranks, false);
    long rows = buffer.rows(rank);
    long columns = buffer.columns(rank);
    if (isLine()) {
      return List.of(rows * columns);
    }
    return buffer.transposed() ? List.of(columns, rows) : List.of(rows, columns);
  }

  /// The type of its numbers in that problem.
  public DType dtype(GemmSpec spec) {
    return switch (this) {
      case INPUT, GATHERED_INPUT -> spec.dtype();
      case WEIGHT -> spec.weightDtype();
      case OUTPUT -> spec.outputDtype();
      case PRE_ACTIVATION, BIAS -> spec.sumDtype();
      // Sums are of the type that results have.
      case BESIDE_INPUT, BESIDE_OUTPUT ->
          spec.pattern() == GemmSpec.Pattern.GEMM_BESIDE_ALL_GATHER
              ? spec.dtype()
              : spec.sumDtype();
    };
  }

  private Shape shape(GemmSpec spec, int ranks, int rank) {
    var its = Shares.of(spec, ranks, rank);
    long beside = spec.besideElements();
    // The side of the communication beside the multiplication that has all of it.
    var whole =
        spec.pattern() == GemmSpec.Pattern.GEMM_BESIDE_ALL_GATHER ? BESIDE_OUTPUT : BESIDE_INPUT;
    return switch (this) {
      case INPUT -> new Shape(its.input().length(), its.inner().length());
      case WEIGHT -> new Shape(its.inner().length(), its.columns().length());
      case BIAS -> new Shape(1, its.columns().length());
      case OUTPUT, PRE_ACTIVATION -> new Shape(its.output().length(), its.columns().length());
      case GATHERED_INPUT -> new Shape(spec.m(), spec.k());
      case BESIDE_INPUT, BESIDE_OUTPUT ->
          new Shape(this == whole ? beside : Slice.of(beside, ranks, rank).length(), 1);
    };
  }

  /// The name of its port and buffer.
  public String port() {
    return toString();
  }

  /// As users call it.
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', ' ');
  }
}
