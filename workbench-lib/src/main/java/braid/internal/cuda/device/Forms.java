package braid.internal.cuda.device;

import braid.internal.work.Matrix;
import braid.internal.work.Operand;
import braid.model.DType;

/// The forms in which cublasLt takes the sides of a multiplication.
public final class Forms {
  /// Numbers.
  private static final int MULTIPLE = 16;

  private Forms() {}

  /// Bytes of the second form that a right side needs; 0 where it is multiplied as it lies. E4M3 is
  /// multiplied stored by columns, as tensor cores want it; E5M2 has no partner of its own type
  /// there and is widened.
  public static long formBytes(Matrix source) {
    long wide = storedRows(source) * wideStride(source) * Short.BYTES;
    return switch (source.dtype()) {
      case FP8_E4M3 ->
          source.transposed() && fitsTensorCores(source)
              ? 0
              : isTransposedForm(source) ? (long) source.rows() * source.columns() : wide;
      case FP8_E5M2 -> wide;
      case FP32, TF32, BF16, FP16 -> 0;
    };
  }

  private static boolean fitsTensorCores(Matrix weight) {
    return weight.rows() % 16 == 0
        && weight.columns() % 16 == 0
        && weight.stride() % 16 == 0
        && weight.segment().address() % 16 == 0;
  }

  static boolean isTransposedForm(Matrix source) {
    return source.dtype() == DType.FP8_E4M3 && !source.transposed() && fitsTensorCores(source);
  }

  /// The right side as it is multiplied.
  static Matrix right(Operand operand) {
    var source = operand.source();
    if (operand.widened().isEmpty()) {
      return source;
    }
    var memory = operand.widened().get().segment();
    if (isTransposedForm(source)) {
      return Matrix.transposed(memory, source.dtype(), source.rows(), source.columns());
    }
    return new Matrix(
        memory,
        DType.FP16,
        source.rows(),
        source.columns(),
        Math.toIntExact(wideStride(source)),
        source.transposed());
  }

  static long storedRows(Matrix matrix) {
    return matrix.transposed() ? matrix.columns() : matrix.rows();
  }

  static long storedColumns(Matrix matrix) {
    return matrix.transposed() ? matrix.rows() : matrix.columns();
  }

  /// How far apart the rows of a matrix begin that is widened to fp16: at multiples of 16 bytes, or
  /// cublasLt has no algorithm for it.
  static long wideStride(Matrix matrix) {
    return up(storedColumns(matrix));
  }

  /// The next multiple of so many numbers: of any type they take a multiple of 16 bytes.
  static long up(long numbers) {
    return (numbers + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
  }
}
