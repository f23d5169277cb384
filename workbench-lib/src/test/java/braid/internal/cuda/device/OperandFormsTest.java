package braid.internal.cuda.device;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.resource.PrivateMemory;
import braid.internal.work.Matrix;
import braid.internal.work.Operand;
import braid.model.DType;
import java.lang.foreign.Arena;
import java.util.Optional;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OperandFormsTest {
  private static final int ALIGNMENT = 16;

  @ParameterizedTest
  @CsvSource({
    "FP8_E5M2, 5, 7, false, 5, 16",
    "FP8_E5M2, 5, 7, true, 7, 16",
    "FP8_E4M3, 33, 1, true, 1, 48",
    "FP8_E5M2, 16, 32, false, 16, 32",
    "FP8_E4M3, 1, 17, false, 1, 32"
  })
  void widenedMatricesHaveAlignedRows(
      DType dtype, int rows, int columns, boolean transposed, int storedRows, int stride) {
    try (var arena = Arena.ofConfined()) {
      var memory = arena.allocate((long) rows * columns, ALIGNMENT);
      var source =
          transposed
              ? Matrix.transposed(memory, dtype, rows, columns)
              : Matrix.of(memory, dtype, rows, columns);
      long bytes = OperandForms.formBytes(source, dtype);
      assertThat(bytes).isEqualTo((long) storedRows * stride * Short.BYTES);
      var form = arena.allocate(bytes, ALIGNMENT);
      var right =
          OperandForms.right(
              new Operand(source, dtype, Optional.of(new PrivateMemory(form, () -> {}))));
      assertThat(right).isEqualTo(new Matrix(form, DType.FP16, rows, columns, stride, transposed));
    }
  }

  @ParameterizedTest
  @CsvSource({
    "FP8_E4M3, FP8_E4M3, true, 0",
    "FP8_E4M3, FP8_E5M2, true, 0",
    "FP8_E5M2, FP8_E4M3, true, 0",
    "FP8_E5M2, FP8_E5M2, true, 3072",
    "FP8_E4M3, FP8_E5M2, false, 1536",
    "FP8_E5M2, FP8_E4M3, false, 1536",
    "FP8_E5M2, FP8_E5M2, false, 3072"
  })
  void onlyE5m2TimesE5m2IsWidened(DType left, DType right, boolean transposed, long bytes) {
    try (var arena = Arena.ofConfined()) {
      var memory = arena.allocate(32 * 48, ALIGNMENT);
      var source =
          transposed ? Matrix.transposed(memory, right, 32, 48) : Matrix.of(memory, right, 32, 48);
      assertThat(OperandForms.formBytes(source, left)).isEqualTo(bytes);
      if (bytes == 32 * 48) {
        var form = new PrivateMemory(arena.allocate(bytes, ALIGNMENT), () -> {});
        assertThat(OperandForms.right(new Operand(source, left, Optional.of(form))))
            .isEqualTo(Matrix.transposed(form.segment(), right, 32, 48));
      }
    }
  }

  @ParameterizedTest
  @CsvSource({
    "FP8_E4M3, 32, 48, true, 0",
    "FP8_E4M3, 32, 48, false, 1536",
    "FP16, 5, 7, true, 0",
    "BF16, 5, 7, false, 0"
  })
  void matricesThatTensorCoresTakeAreNotWidened(
      DType dtype, int rows, int columns, boolean transposed, long bytes) {
    try (var arena = Arena.ofConfined()) {
      var memory = arena.allocate((long) rows * columns * dtype.bytes(), ALIGNMENT);
      assertThat(
              OperandForms.formBytes(
                  transposed
                      ? Matrix.transposed(memory, dtype, rows, columns)
                      : Matrix.of(memory, dtype, rows, columns),
                  dtype))
          .isEqualTo(bytes);
    }
  }
}
