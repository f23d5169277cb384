package braid.internal.cuda.device;

import braid.internal.resource.PrivateMemory;
import braid.internal.work.Epilogue;
import braid.internal.work.Gemm;
import braid.internal.work.Matrix;
import braid.internal.work.Operand;
import braid.model.DType;
import braid.model.SelfCheck;
import braid.natives.blaslt.Lt;
import braid.natives.cuda.GpuStream;
import braid.natives.kernels.Drawn;
import braid.natives.kernels.Integers;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Stream;

/// Checks multiplications of every type and layout on this rank's GPU against plain loops, in
/// unaligned sizes, both direct and in padded copies.
public record GemmCheck(CudaDevice device) implements SelfCheck {
  /// Rows, columns and depth, small enough that sums of products of small integers are exact in
  /// every type.
  private record Size(int m, int n, int k) {}

  private static final List<Size> SIZES =
      List.of(new Size(1, 1, 1), new Size(7, 13, 5), new Size(8, 16, 16), new Size(33, 15, 9));

  private static final long LEFT_SEED = 1;
  private static final long RIGHT_SEED = 2;

  /// Types of the left and the right side and of the result.
  private record Types(DType left, DType right, DType result) {
    /// Types with the default result: fp8 is multiplied into bf16.
    Types(DType left, DType right) {
      this(left, right, left.isFp8() ? DType.BF16 : left);
    }

    @Override
    public String toString() {
      return "%s x %s to %s".formatted(left, right, result);
    }
  }

  /// Scale by which results in fp8 are stored.
  private static final float OUT_SCALE = 0.25f;

  /// Every type with itself, pairs of different types, and results in fp8.
  private static final List<Types> TYPES =
      Stream.concat(
              Arrays.stream(DType.values()).map(type -> new Types(type, type)),
              Stream.of(
                  new Types(DType.FP8_E4M3, DType.FP8_E5M2),
                  new Types(DType.FP8_E5M2, DType.FP8_E4M3),
                  new Types(DType.FP8_E4M3, DType.FP8_E4M3, DType.FP8_E4M3),
                  new Types(DType.FP8_E5M2, DType.FP8_E4M3, DType.FP8_E5M2),
                  new Types(DType.FP8_E4M3, DType.FP8_E4M3, DType.FP8_E5M2),
                  new Types(DType.FP32, DType.TF32),
                  new Types(DType.TF32, DType.FP32)))
          .toList();

  /// One multiplication.
  private record Case(
      Types types, Size size, boolean transposedA, boolean transposedB, boolean padded) {
    Epilogue epilogue() {
      return types.result.isFp8()
          ? new Epilogue(1, false, Optional.empty(), Optional.empty(), Optional.empty(), OUT_SCALE)
          : Epilogue.NONE;
    }

    int a(int row, int depth) {
      return Integers.at(LEFT_SEED, transposedA ? depth * size.m + row : row * size.k + depth);
    }

    int b(int depth, int column) {
      return Integers.at(
          RIGHT_SEED, transposedB ? column * size.k + depth : depth * size.n + column);
    }

    @Override
    public String toString() {
      return String.format(
          Locale.ROOT,
          "%s m=%d n=%d k=%d%s%s%s",
          types,
          size.m,
          size.n,
          size.k,
          transposedA ? " transposed input" : "",
          transposedB ? " transposed weight" : "",
          padded ? " padded" : "");
    }
  }

  @Override
  public String name() {
    return "multiplications of any size";
  }

  @Override
  public String run() {
    device.gpu().use();
    try (var stream = device.gpu().stream(device.gpu().leastPriority())) {
      for (var types : TYPES) {
        for (var size : SIZES) {
          for (int flags = 0; flags < 1 << 3; flags++) {
            var each = new Case(types, size, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0);
            var mismatch = mismatch(stream, each);
            if (mismatch.isPresent()) {
              return mismatch.get();
            }
          }
        }
      }
      return "";
    }
  }

  private Optional<String> mismatch(GpuStream stream, Case tested) {
    try (var matrices = new Scratch(device.gpu());
        var scratch = new Scratch(device.gpu())) {
      var size = tested.size;
      var a = matrix(matrices, tested.types.left, size.m, size.k, tested.transposedA);
      var b = matrix(matrices, tested.types.right, size.k, size.n, tested.transposedB);
      var c = matrix(matrices, tested.types.result, size.m, size.n, false);
      fill(stream, a, LEFT_SEED);
      fill(stream, b, RIGHT_SEED);
      var operand = operand(matrices, b, tested.types.left);
      var multiplier = device.multiplier();
      multiplier.refresh(stream, operand);
      // Choosing an algorithm reads both sides on another stream.
      stream.synchronize();
      long workspace = matrices.allocate(Lt.WORKSPACE_BYTES);
      multiplier
          .prepare(new Gemm(a, operand, c, tested.epilogue()), 0, scratch, workspace, tested.padded)
          .forEach(step -> step.launch().on(stream));
      stream.synchronize();
      return mismatch(tested, c);
    }
  }

  private Matrix matrix(Scratch matrices, DType dtype, int rows, int columns, boolean transposed) {
    long bytes = (long) rows * columns * dtype.bytes();
    var memory = CudaDevice.view(matrices.allocate(bytes), bytes, Arena.global());
    return transposed
        ? Matrix.transposed(memory, dtype, rows, columns)
        : Matrix.of(memory, dtype, rows, columns);
  }

  private void fill(GpuStream stream, Matrix matrix, long seed) {
    device
        .kernels()
        .draw(
            stream,
            matrix.segment().address(),
            (long) matrix.rows() * matrix.columns(),
            Arguments.type(matrix.dtype()),
            Drawn.INTEGERS,
            seed);
  }

  /// Returns an operand whose second form is freed with `matrices`.
  private static Operand operand(Scratch matrices, Matrix source, DType left) {
    long bytes = OperandForms.formBytes(source, left);
    return new Operand(
        source,
        left,
        bytes == 0
            ? Optional.empty()
            : Optional.of(
                new PrivateMemory(
                    CudaDevice.view(matrices.allocate(bytes), bytes, Arena.global()), () -> {})));
  }

  private Optional<String> mismatch(Case tested, Matrix c) {
    try (var arena = Arena.ofConfined()) {
      long bytes = c.segment().byteSize();
      var got = arena.allocate(bytes, Long.BYTES);
      device.gpu().copy(got.address(), c.segment().address(), bytes);
      for (int row = 0; row < tested.size.m; row++) {
        for (int column = 0; column < tested.size.n; column++) {
          int sum = 0;
          for (int depth = 0; depth < tested.size.k; depth++) {
            sum += tested.a(row, depth) * tested.b(depth, column);
          }
          float actual = c.dtype().load(got, (long) row * tested.size.n + column);
          float expected = c.dtype().round(sum * tested.epilogue().outScale());
          if (actual != expected) {
            return Optional.of(
                "%s: [%d, %d] must be %s but was %s"
                    .formatted(tested, row, column, expected, actual));
          }
        }
      }
      return Optional.empty();
    }
  }
}
