package braid.internal.cuda.device;

import braid.internal.work.Matrix;
import braid.internal.work.Operand;
import braid.model.DType;

/// Forms in which cublasLt takes the sides of a multiplication.
public final class OperandForms {
  /// Multiple of numbers to which strides are rounded up.
  private static final int MULTIPLE = 16;

  private OperandForms() {}

  /// Returns true if tensor cores multiply these types in fp8. They do not multiply E5M2 by E5M2.
  public static boolean isFp8Pair(DType left, DType right) {
    return left.isFp8() && right.isFp8() && (left != DType.FP8_E5M2 || right != DType.FP8_E5M2);
  }

  /// Size in bytes of the second form that a right side needs with left sides of the type; 0 if it
  /// is multiplied as stored. Tensor cores take fp8 stored by columns; other fp8 matrices are
  /// widened to fp16.
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

  /// Returns the right side in the form in which it is multiplied.
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

  /// Stride of a matrix that is widened to fp16: a multiple of 16 bytes, without which cublasLt has
  /// no algorithm.
  static long wideStride(Matrix matrix) {
    return up(storedColumns(matrix));
  }

  /// Rounds up to a multiple of 16 numbers, which is a multiple of 16 bytes for any type.
  static long up(long numbers) {
    return (numbers + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
  }
}
