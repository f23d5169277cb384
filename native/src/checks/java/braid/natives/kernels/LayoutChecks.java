package braid.natives.kernels;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;

/// Checks of transposed and widened fp8.
final class LayoutChecks {
  private record Shape(int rows, int columns, int stride) {
    int bytes() {
      return (rows - 1) * stride + columns;
    }
  }

  private static final List<Shape> SHAPES =
      List.of(
          new Shape(1, 1, 1),
          new Shape(3, 70, 70),
          new Shape(64, 64, 64),
          new Shape(65, 129, 140),
          new Shape(200, 31, 33),
          new Shape(128, 256, 260));

  private LayoutChecks() {}

  static void run(CheckBench bench) {
    bench.check(
        "transpose",
        "shapes around its tiles",
        () -> CheckBench.firstWrong(SHAPES.stream(), shape -> transposes(bench, shape)));
    for (var type : List.of(ElementType.E4M3, ElementType.E5M2)) {
      bench.check(
          "widen_fp16",
          "every pattern of " + type + ", with gaps",
          () -> CheckBench.firstWrong(SHAPES.stream(), shape -> widens(bench, type, shape)));
    }
  }

  private static Optional<String> transposes(CheckBench bench, Shape shape) {
    var content = CopyChecks.bytes(shape.bytes());
    var expected = new byte[shape.rows * shape.columns];
    for (int i = 0; i < expected.length; i++) {
      expected[i] = content[i % shape.rows * shape.stride + i / shape.rows];
    }
    try (var to = bench.buffer(expected.length, 1);
        var from = bench.buffer(content.length, 3).put(content)) {
      bench
          .kernels()
          .transpose(
              bench.stream(),
              to.address(),
              from.address(),
              shape.stride,
              shape.rows,
              shape.columns);
      return to.holds(expected);
    }
  }

  private static Optional<String> widens(CheckBench bench, ElementType type, Shape shape) {
    int toStride = shape.stride + 4;
    int toBytes = Short.BYTES * ((shape.rows - 1) * toStride + shape.columns);
    var content = new byte[shape.bytes()];
    for (int i = 0; i < content.length; i++) {
      content[i] = (byte) i;
    }
    try (var to = bench.buffer(toBytes, 0);
        var from = bench.buffer(content.length, 0).put(content)) {
      bench
          .kernels()
          .widenFp16(
              bench.stream(),
              to.address(),
              toStride,
              from.address(),
              shape.stride,
              type,
              shape.rows,
              shape.columns);
      return differs(shape, toStride, content, type, to.segment()).or(to::guards);
    }
  }

  private static Optional<String> differs(
      Shape shape, int toStride, byte[] content, ElementType type, MemorySegment got) {
    float gap = gap();
    for (int row = 0; row < shape.rows(); row++) {
      int width = row + 1 < shape.rows() ? toStride : shape.columns();
      for (int column = 0; column < width; column++) {
        float expected =
            column < shape.columns() ? type.widen(content[row * shape.stride() + column]) : gap;
        float is = ElementType.FP16.load(got, (long) row * toStride + column);
        if (Float.compare(expected, is) != 0) {
          return Optional.of(
              "row %d, column %d is %s instead of %s".formatted(row, column, is, expected));
        }
      }
    }
    return Optional.empty();
  }

  /// Value of bytes that were never written.
  private static float gap() {
    int guard = CheckBench.Buffer.GUARD;
    return ElementType.FP16.widen(guard << Byte.SIZE | guard);
  }
}
