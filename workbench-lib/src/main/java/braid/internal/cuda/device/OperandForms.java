package braid.internal.cuda.device;

import braid.internal.work.Matrix;
import braid.internal.work.Operand;
import braid.model.DType;

/// The forms in which cublasLt takes the sides of a multiplication.
public final class OperandForms {
  /// Numbers.
  private static final int MULTIPLE = 16;

  private OperandForms() {}

  /// Whether tensor cores multiply numbers of those types in fp8: E5M2 has no partner of its own
  /// type there.
  public static boolean isFp8Pair(DType left, DType right) {
    return left.isFp8() && right.isFp8() && (left != DType.FP8_E5M2 || right != DType.FP8_E5M2);
  }

  /// Bytes of the second form that a right side needs beside left sides of that type; 0 where it is
  /// multiplied as it lies. Tensor cores take fp8 stored by columns; what they do not take is
  /// widened.
  public static long formBytes(Matrix source, DType left) {
    if (!source.dtype().isFp8()) {
      return 0;
    }
    if (!isFp8Pair(left, source.dtype()) || !fitsTensorCores(source)) {
      return storedRows(source) * wideStride(source) * Short.BYTES;
    }
    return source.transposed() ? 0 : (long) source.rows() * source.columns();
  }

  private static boolean fitsTensorCores(Matrix weight) {
    return weight.rows() % 16 == 0
        && weight.columns() % 16 == 0
        && weight.stride() % 16 == 0
        && weight.segment().address() % 16 == 0;
  }

  static boolean isTransposedForm(Operand operand) {
    var source = operand.source();
    return isFp8Pair(operand.left(), source.dtype())
        && !source.transposed()
        && fitsTensorCores(source);
  }

  /// The right side as it is multiplied.
  static Matrix right(Operand operand) {
    var source = operand.source();
    if (operand.widened().isEmpty()) {
      return source;
    }
    var memory = operand.widened().get().segment();
    if (isTransposedForm(operand)) {
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
