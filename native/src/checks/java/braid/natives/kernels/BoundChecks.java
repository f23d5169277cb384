package braid.natives.kernels;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// Checks of the kernels for sizes, intervals, and comparisons with intervals.
final class BoundChecks {
  private static final float INFINITY = Float.POSITIVE_INFINITY;
  private static final int COUNT = 10_007;

  /// One number inside or outside its interval, stored as fp16.
  record Single(
      float expected,
      float low,
      float high,
      boolean activated,
      float outScale,
      float got,
      boolean right) {
    /// Stored without scaling.
    Single(float expected, float low, float high, boolean activated, float got, boolean right) {
      this(expected, low, high, activated, 1, got, right);
    }
  }

  static final List<Single> SINGLES =
      List.of(
          new Single(3, 2.9f, 3.1f, false, 3.1f, true),
          new Single(3, 2.9f, 3.1f, false, 3.2f, false),
          new Single(3, 2.9f, 3.1f, false, Float.NaN, false),
          new Single(Float.NaN, Float.NaN, Float.NaN, false, Float.NaN, true),
          new Single(Float.NaN, Float.NaN, Float.NaN, false, 3, false),
          new Single(Float.NaN, Float.NaN, Float.NaN, false, INFINITY, false),
          new Single(INFINITY, INFINITY, INFINITY, false, INFINITY, true),
          new Single(INFINITY, INFINITY, INFINITY, false, -INFINITY, false),
          new Single(INFINITY, INFINITY, INFINITY, false, 60_000, false),
          new Single(5, -INFINITY, INFINITY, false, Float.NaN, true),
          new Single(Float.NaN, -INFINITY, Float.NaN, false, -INFINITY, true),
          new Single(Float.NaN, -INFINITY, Float.NaN, false, 4, false),
          new Single(65_519, 65_000, 65_600, false, INFINITY, true),
          new Single(2, 2, 2, true, 1.9546f, true),
          new Single(2, 2, 2, true, 1.957f, false),
          new Single(-1, -2, 0, true, -0.17f, true),
          new Single(-1, -2, 0, true, -0.1711f, false),
          new Single(-INFINITY, -INFINITY, -INFINITY, true, Float.NaN, true),
          new Single(-INFINITY, -INFINITY, -INFINITY, true, 0, true),
          new Single(3, 2.9f, 3.1f, false, 4, 12.4f, true),
          new Single(3, 2.9f, 3.1f, false, 4, 3.1f, false),
          new Single(2, 2, 2, true, 0.5f, 0.9773f, true),
          new Single(2, 2, 2, true, 0.5f, 1.9546f, false),
          new Single(INFINITY, INFINITY, INFINITY, false, 0.5f, INFINITY, true));

  private BoundChecks() {}

  static void run(CheckBench bench) {
    for (var type : NumberChecks.STORED) {
      bench.check("sizes", "every pattern of " + type, () -> sizes(bench, type));
    }
    for (boolean overflows : List.of(false, true)) {
      bench.check(
          "widen",
          "outward, exact, infinite, overflow " + overflows,
          () -> widens(bench, overflows));
    }
    for (var type : List.of(ElementType.FP32, ElementType.BF16, ElementType.FP16)) {
      bench.check("judge", type + ", first and squares", () -> judges(bench, type));
    }
    bench.check("judge", "intervals, NaN, infinities, GELU", () -> singles(bench));
  }

  private static Optional<String> sizes(CheckBench bench, ElementType type) {
    var content = NumberChecks.patterns(type);
    int count = content.length / type.bytes();
    try (var from = bench.buffer(content.length, type.bytes()).put(content);
        var to = bench.buffer(content.length, 0)) {
      bench.kernels().sizes(bench.stream(), to.address(), from.address(), count, type);
      var segment = MemorySegment.ofArray(content);
      return NumberChecks.differs(count, i -> Math.abs(type.load(segment, i)), type, to);
    }
  }

  private static byte[] floats(List<Float> values) {
    return CheckBench.bytes(ElementType.FP32, values.size(), values::get);
  }

  private static Optional<String> widens(CheckBench bench, boolean overflows) {
    float share = 0.001f;
    float least = 1e-6f;
    float exact = 2;
    var values = new ArrayList<Float>();
    var sizes = new ArrayList<Float>();
    for (int i = 0; i < COUNT; i++) {
      values.add(
          switch (i % 5) {
            case 0 -> INFINITY;
            case 1 -> Float.NaN;
            default -> Integers.at(7, i) * 1.37f;
          });
      sizes.add(
          switch (i % 7) {
            case 0 -> INFINITY;
            case 1 -> 1.5f;
            default -> 2 + i * 0.1f;
          });
    }
    try (var low = bench.buffer(COUNT * Float.BYTES, 0).put(floats(values));
        var high = bench.buffer(COUNT * Float.BYTES, Float.BYTES).put(floats(values));
        var bounds = bench.buffer(COUNT * Float.BYTES, 0).put(floats(sizes))) {
      bench
          .kernels()
          .widen(
              bench.stream(),
              low.address(),
              high.address(),
              bounds.address(),
              COUNT,
              share,
              least,
              exact,
              overflows);
      var lows = low.segment();
      var highs = high.segment();
      for (int i = 0; i < COUNT; i++) {
        float value = values.get(i);
        float size = sizes.get(i);
        double far = size <= exact ? 0 : (double) share * size + least;
        boolean all = overflows && size == INFINITY;
        float below = ElementType.FP32.load(lows, i);
        float above = ElementType.FP32.load(highs, i);
        boolean right =
            all
                ? below == -INFINITY && above == INFINITY
                : !Float.isFinite(value)
                    ? Float.compare(below, value) == 0 && Float.compare(above, value) == 0
                    : outward(value, -far, below) && outward(value, far, above);
        if (!right) {
          return Optional.of("%s by %s became %s to %s".formatted(value, size, below, above));
        }
      }
      return low.guards().or(high::guards);
    }
  }

  /// Returns true if the number moved by at least `amount`, and no further than roundings of fp32.
  private static boolean outward(float value, double amount, float moved) {
    double exact = value + amount;
    if (amount == 0 || Double.isInfinite(amount)) {
      return moved == exact;
    }
    double beyond = (moved - exact) * Math.signum(amount);
    // `by` itself may be larger, when most of the value cancels.
    double largest = Math.max(Math.abs(exact), Math.abs(amount));
    return beyond >= 0 && beyond <= 4 * Math.ulp((float) largest);
  }

  /// Judges numbers with known errors, of which the last one exceeds its interval.
  private static Optional<String> judges(CheckBench bench, ElementType type) {
    double step = type == ElementType.FP32 ? 0x1p-23 : type == ElementType.BF16 ? 0x1p-7 : 0x1p-10;
    var expected = new ArrayList<Float>();
    var low = new ArrayList<Float>();
    var high = new ArrayList<Float>();
    var got = new byte[COUNT * type.bytes()];
    double squares = 0;
    double allowed = 0;
    for (int i = 0; i < COUNT; i++) {
      // Between 1 and 2 a step is the type's epsilon.
      float value = type.round(1 + i % 32 / 64f);
      float found = type.round(value + (i % 3) * (float) step);
      double reach = i >= COUNT - 2 ? 0 : 4 * step;
      expected.add(value);
      low.add((float) (value - reach));
      high.add((float) (value + reach));
      type.store(MemorySegment.ofArray(got), i, found);
      double off = Math.max(0, Math.abs((double) found - value) - step / 2);
      squares += off * off;
      allowed += reach * reach;
    }
    // The last two intervals are points, and the first of those values is one step off.
    int first = (COUNT - 2) % 3 == 0 ? COUNT - 1 : COUNT - 2;
    var answer = judged(bench, expected, low, high, false, 1, got, type);
    return answer.first == first && near(answer.squares, squares) && near(answer.allowed, allowed)
        ? answer.guards
        : Optional.of(
            "first %d, squares %s, allowed %s instead of %s"
                .formatted(first, squares, allowed, answer));
  }

  /// Results of the kernel.
  private record Answer(long first, double squares, double allowed, Optional<String> guards) {}

  private static Answer judged(
      CheckBench bench,
      List<Float> expected,
      List<Float> low,
      List<Float> high,
      boolean activated,
      float outScale,
      byte[] got,
      ElementType type) {
    int count = expected.size();
    var begin = new byte[3 * Long.BYTES];
    MemorySegment.ofArray(begin).setAtIndex(ValueLayout.JAVA_LONG_UNALIGNED, 0, -1);
    try (var middle = bench.buffer((long) count * Float.BYTES, 0).put(floats(expected));
        var lower = bench.buffer((long) count * Float.BYTES, Float.BYTES).put(floats(low));
        var upper = bench.buffer((long) count * Float.BYTES, 0).put(floats(high));
        var found = bench.buffer(got.length, type.bytes()).put(got);
        var result = bench.buffer(begin.length, 0).put(begin)) {
      bench
          .kernels()
          .judge(
              bench.stream(),
              middle.address(),
              lower.address(),
              upper.address(),
              ElementType.FP32,
              activated,
              outScale,
              found.address(),
              type,
              count,
              result.address());
      var answer = result.segment();
      return new Answer(
          answer.getAtIndex(ValueLayout.JAVA_LONG_UNALIGNED, 0),
          answer.getAtIndex(ValueLayout.JAVA_DOUBLE_UNALIGNED, 1),
          answer.getAtIndex(ValueLayout.JAVA_DOUBLE_UNALIGNED, 2),
          result.guards());
    }
  }

  private static boolean near(double found, double expected) {
    return Math.abs(found - expected) <= 1e-4 * Math.abs(expected);
  }

  private static Optional<String> singles(CheckBench bench) {
    return CheckBench.firstWrong(
        SINGLES.stream(),
        each -> {
          var type = ElementType.FP16;
          var answer =
              judged(
                  bench,
                  List.of(each.expected),
                  List.of(each.low),
                  List.of(each.high),
                  each.activated,
                  each.outScale,
                  CheckBench.bytes(type, 1, _ -> each.got),
                  type);
          return answer.first == (each.right ? -1 : 0)
              ? Optional.empty()
              : Optional.of("returned %d".formatted(answer.first));
        });
  }
}
