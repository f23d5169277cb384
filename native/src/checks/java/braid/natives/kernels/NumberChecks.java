package braid.natives.kernels;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.IntPredicate;
import java.util.function.IntToDoubleFunction;
import java.util.stream.Stream;

/// Checks of conversions of every bit pattern, of filling, ranges and comparisons.
final class NumberChecks {
  static final Set<ElementType> STORED = EnumSet.complementOf(EnumSet.of(ElementType.TF32));

  /// Lower halves of fp32 bits: at, next to and halfway between the values of narrower types.
  private static final int[] LOWER_HALVES = {
    0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff
  };

  private NumberChecks() {}

  static void run(CheckBench bench) {
    for (var type : STORED) {
      for (int shift : List.of(0, Float.BYTES)) {
        bench.check(
            "reduce",
            "590 thousand fp32 numbers rounded to %s, from shift %d".formatted(type, shift),
            () -> converts(bench, wide(), ElementType.FP32, type, shift));
      }
      bench.check(
          "reduce",
          "every pattern of " + type + " widened",
          () -> converts(bench, patterns(type), type, ElementType.FP32, 0));
      bench.check(
          "reduce",
          "every pattern of " + type + " to itself",
          () -> converts(bench, patterns(type), type, type, 0));
      bench.check("fill_value", type.toString(), () -> fillsValues(bench, type));
      for (var numbers : Drawn.values()) {
        bench.check(numbers.kernel(), type.toString(), () -> draws(bench, type, numbers));
      }
    }
    bench.check("range", "integers, fractions, infinity, NaN", () -> ranges(bench));
    bench.check("compare", "places, counts, tolerance, NaN", () -> compares(bench));
  }

  private static byte[] wide() {
    var all = new byte[(1 << 16) * LOWER_HALVES.length * Float.BYTES];
    var segment = MemorySegment.ofArray(all);
    for (int i = 0; i < all.length / Float.BYTES; i++) {
      int bits = ((i / LOWER_HALVES.length) << 16) | LOWER_HALVES[i % LOWER_HALVES.length];
      segment.setAtIndex(ValueLayout.JAVA_INT_UNALIGNED, i, bits);
    }
    return all;
  }

  static byte[] patterns(ElementType type) {
    if (type.bytes() == Float.BYTES) {
      return wide();
    }
    int count = 1 << (Byte.SIZE * type.bytes());
    var all = new byte[count * type.bytes()];
    var segment = MemorySegment.ofArray(all);
    for (int i = 0; i < count; i++) {
      if (type.bytes() == Byte.BYTES) {
        all[i] = (byte) i;
      } else {
        segment.setAtIndex(ValueLayout.JAVA_SHORT_UNALIGNED, i, (short) i);
      }
    }
    return all;
  }

  /// Converts by a reduction of one part.
  private static Optional<String> converts(
      CheckBench bench, byte[] content, ElementType from, ElementType to, int shift) {
    int count = content.length / from.bytes();
    try (var source = bench.buffer(content.length, shift).put(content);
        var out = bench.buffer((long) count * to.bytes(), 0)) {
      var sum =
          ReduceArguments.of(
              List.of(new ReduceArguments.Part(source.address(), from)),
              new ReduceArguments.Part(out.address(), to),
              1,
              count,
              ReduceArguments.Finish.NONE);
      bench.kernels().reduce(bench.stream(), bench.kernels().fullGrid(), sum);
      var segment = MemorySegment.ofArray(content);
      return differs(count, i -> to.round(from.load(segment, i)), to, out);
    }
  }

  private static Optional<String> fillsValues(CheckBench bench, ElementType type) {
    int count = 1001;
    return CheckBench.firstWrong(
        Stream.of(1.3f, -0.0025f, 1e9f),
        value -> {
          try (var out = bench.buffer((long) count * type.bytes(), type.bytes())) {
            bench.kernels().fillValue(bench.stream(), out.address(), count, type, value);
            return differs(count, i -> type.round(value), type, out);
          }
        });
  }

  private static Optional<String> draws(CheckBench bench, ElementType type, Drawn numbers) {
    int count = 100_003;
    return CheckBench.firstWrong(
        Stream.of(42L, -7L),
        seed -> {
          try (var out = bench.buffer((long) count * type.bytes(), type.bytes())) {
            bench.kernels().draw(bench.stream(), out.address(), count, type, numbers, seed);
            return differs(count, i -> type.round(numbers.at(seed, i)), type, out);
          }
        });
  }

  /// Returns the first number that differs from the expected one, bit by bit except for NaN
  /// payloads.
  static Optional<String> differs(
      int count, IntToDoubleFunction expected, ElementType type, CheckBench.Buffer got) {
    var segment = got.segment();
    for (int i = 0; i < count; i++) {
      float should = (float) expected.applyAsDouble(i);
      float is = type.load(segment, i);
      if (Float.compare(should, is) != 0) {
        return Optional.of("number %d is %s instead of %s".formatted(i, is, should));
      }
    }
    return got.guards();
  }

  private record Range(float more, float largest, int integers) {}

  private static Optional<String> ranges(CheckBench bench) {
    int count = 10_007;
    var cases =
        List.of(
            new Range(-3, 3, 1),
            new Range(-7, 7, 1),
            new Range(2.5f, 3, 0),
            new Range(Float.NEGATIVE_INFINITY, Float.POSITIVE_INFINITY, 1),
            new Range(Float.NaN, Float.POSITIVE_INFINITY, 0));
    return CheckBench.firstWrong(cases.stream(), each -> range(bench, count, each));
  }

  private static Optional<String> range(CheckBench bench, int count, Range each) {
    var content = integers(count);
    ElementType.FP32.store(MemorySegment.ofArray(content), count - 5, each.more);
    // The largest value so far, and 1 while all values are integers.
    var begin = new byte[2 * Integer.BYTES];
    begin[Integer.BYTES] = 1;
    try (var from = bench.buffer(content.length, Float.BYTES).put(content);
        var result = bench.buffer(begin.length, 0).put(begin)) {
      bench
          .kernels()
          .range(bench.stream(), from.address(), count, ElementType.FP32, result.address());
      var found = result.segment();
      float largest = found.get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0);
      int integers = found.get(ValueLayout.JAVA_INT_UNALIGNED, Float.BYTES);
      return largest == each.largest && integers == each.integers
          ? result.guards()
          : Optional.of("returned %s, %d".formatted(largest, integers));
    }
  }

  private static byte[] integers(int count) {
    // The first is the largest possible, whatever the seed draws.
    return CheckBench.bytes(ElementType.FP32, count, i -> i == 0 ? 3 : Integers.at(1, i));
  }

  /// One expected number, the actual one, and the tolerance.
  private record Pair(float expected, float got, double atol, double rtol, boolean same) {}

  private static Optional<String> compares(CheckBench bench) {
    int count = 10_007;
    var cases =
        List.of(
            new Pair(3, 3, 0, 0, true),
            new Pair(3, 2, 0, 0, false),
            new Pair(3, 2, 1, 0, true),
            new Pair(100, 101, 0, 0.02, true),
            new Pair(100, 101, 0, 0.001, false),
            new Pair(1.001f, ElementType.BF16.round(1.001f), 0, 0, true),
            new Pair(Float.NaN, Float.NaN, 0, 0, true),
            new Pair(Float.NaN, 1, 1, 1, false),
            new Pair(1, Float.NaN, 1, 1, false),
            new Pair(Float.POSITIVE_INFINITY, Float.POSITIVE_INFINITY, 0, 0, true),
            new Pair(Float.POSITIVE_INFINITY, 5, 1, 1, false),
            new Pair(5, Float.NEGATIVE_INFINITY, 1, 1, false));
    return CheckBench.firstWrong(cases.stream(), each -> compare(bench, count, each));
  }

  private static Optional<String> compare(CheckBench bench, int count, Pair each) {
    int first = 4321;
    var integers = MemorySegment.ofArray(integers(count));
    IntPredicate isPlace = i -> i == first || i == count - 1;
    var expected =
        CheckBench.bytes(
            ElementType.FP32,
            count,
            i -> isPlace.test(i) ? each.expected : ElementType.FP32.load(integers, i));
    var got =
        CheckBench.bytes(
            ElementType.BF16,
            count,
            i -> isPlace.test(i) ? each.got : ElementType.FP32.load(integers, i));
    var begin = new byte[2 * Long.BYTES];
    MemorySegment.ofArray(begin).setAtIndex(ValueLayout.JAVA_LONG_UNALIGNED, 0, -1);
    try (var left = bench.buffer(expected.length, 0).put(expected);
        var right = bench.buffer(got.length, 2).put(got);
        var result = bench.buffer(begin.length, 0).put(begin)) {
      bench
          .kernels()
          .compare(
              bench.stream(),
              left.address(),
              ElementType.FP32,
              right.address(),
              ElementType.BF16,
              count,
              each.atol,
              each.rtol,
              result.address());
      var found = result.segment();
      long index = found.getAtIndex(ValueLayout.JAVA_LONG_UNALIGNED, 0);
      long many = found.getAtIndex(ValueLayout.JAVA_LONG_UNALIGNED, 1);
      return index == (each.same ? -1 : first) && many == (each.same ? 0 : 2)
          ? result.guards()
          : Optional.of("first %d, count %d".formatted(index, many));
    }
  }
}
