package braid.natives.kernels;

import java.util.List;
import java.util.Optional;
import java.util.Random;

/// Checks of rounding heads to e4m3 and restoring them: numbers of all sizes, rows that are further
/// apart than they are long, and heads at any alignment.
final class AttentionRecodeChecks {
  private static final int SCALE_BYTES = 4;

  /// Numbers, or bytes, between rows.
  private static final int GAP = 3;

  private record Shape(int rows, int heads, int headSize) {
    int stride() {
      return heads * headSize + GAP;
    }

    int roundedStride() {
      return heads * (headSize + SCALE_BYTES) + GAP;
    }
  }

  private static final List<Shape> SHAPES =
      List.of(
          new Shape(3, 1, 1),
          new Shape(50, 3, 5),
          new Shape(100, 4, 64),
          new Shape(999, 8, 128),
          new Shape(20, 2, 260));

  private AttentionRecodeChecks() {}

  static void run(CheckBench bench) {
    for (var type : List.of(ElementType.FP32, ElementType.BF16, ElementType.FP16)) {
      bench.check(
          "attention_round",
          "and restored, of " + type,
          () -> CheckBench.firstWrong(SHAPES.stream(), shape -> check(bench, type, shape)));
    }
  }

  private static Optional<String> check(CheckBench bench, ElementType type, Shape shape) {
    var given = new float[shape.rows * shape.stride()];
    var random = new Random(shape.hashCode());
    for (int i = 0; i < given.length; i++) {
      // Numbers of a row differ by up to 2^18; rows have all sizes of fp32.
      int exponent = Math.min(127, (i / shape.stride() * 11) % 260 - 140 + random.nextInt(18));
      float number =
          type.round((float) Math.scalb(1 + random.nextDouble(), exponent))
              * (random.nextBoolean() ? 1 : -1);
      given[i] = Float.isFinite(number) ? number : 1;
    }
    try (var wide = bench.buffer((long) given.length * type.bytes(), 0);
        var rounded = bench.buffer((long) shape.rows * shape.roundedStride(), 1)) {
      wide.put(CheckBench.bytes(type, given.length, i -> given[i]));
      var heads =
          new AttentionKernels.Heads(
              type,
              wide.address(),
              shape.stride(),
              rounded.address(),
              shape.roundedStride(),
              shape.rows,
              shape.heads,
              shape.headSize);
      bench.attention().recode(bench.stream(), heads, true);
      bench.attention().recode(bench.stream(), heads, false);
      return wide.holds(
              CheckBench.bytes(
                  type,
                  given.length,
                  i ->
                      i % shape.stride() < shape.stride() - GAP
                          ? expected(type, given, i, shape)
                          : given[i]))
          .or(rounded::guards);
    }
  }

  /// Returns a number after both steps.
  private static double expected(ElementType type, float[] given, int index, Shape shape) {
    int inRow = index % shape.stride();
    int first = index - inRow % shape.headSize;
    double largest = 0;
    for (int i = first; i < first + shape.headSize; i++) {
      largest = Math.max(largest, Math.abs((double) given[i]));
    }
    double scale = 0x1p-100;
    while (largest > 448 * scale) {
      scale *= 2;
    }
    float number =
        type.round((float) (ElementType.E4M3.round((float) (given[index] / scale)) * scale));
    float most =
        type == ElementType.FP16
            ? 65504
            : type.widen(type == ElementType.BF16 ? 0x7f7f : 0x7f7fffff);
    return Math.clamp(number, -most, most);
  }
}
