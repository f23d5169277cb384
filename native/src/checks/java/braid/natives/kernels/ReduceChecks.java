package braid.natives.kernels;

import braid.natives.cuda.GpuCopy;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/// Checks of reductions of all types, numbers of parts and finishing operations.
final class ReduceChecks {
  private static final int ACCUMULATE = 1;
  private static final int BIAS = 2;
  private static final int GELU = 4;
  private static final int AMAX = 8;
  private static final int COMBINATIONS = 16;

  private static final List<Integer> PART_COUNTS = List.of(1, 2, 3, 4, 5, 8, 9, 16);
  private static final List<Float> SCALES = List.of(1f, 0.5f, -0.25f);
  private static final List<Float> OUT_SCALES = List.of(1f, 4f, 1f, 0.25f, 512f);

  /// Three words and a counter.
  private static final int SIGNAL_BYTES = 4 * Long.BYTES;

  /// Initial value of amax.
  private static final float AMAX_BEFORE = 2;

  private static final double SQRT_2_OVER_PI = Math.sqrt(2 / Math.PI);
  private static final double CUBIC = 0.044715;

  /// Rows, columns, blocks, and the offset of every buffer from a multiple of 256 bytes, in
  /// numbers.
  private record Shape(int rows, int columns, int blocks, int shift) {
    int count() {
      return rows * columns;
    }
  }

  private static final List<Shape> SHAPES =
      List.of(
          new Shape(1, 1, 1, 0),
          new Shape(3, 7, 2, 0),
          new Shape(5, 64, 1, 0),
          new Shape(37, 129, 1, 0),
          new Shape(37, 129, 3, 1),
          new Shape(16, 512, 2, 0));

  /// One reduction; bits of `ways` select the finishing operations. In place, the first part is the
  /// output.
  private record Case(
      List<ElementType> parts,
      ElementType out,
      Shape shape,
      float scale,
      float outScale,
      int ways,
      boolean inPlace) {
    /// Type of bias and pre-activation.
    ElementType side() {
      return ReduceArguments.side(out);
    }

    boolean does(int way) {
      return (ways & way) != 0;
    }
  }

  private ReduceChecks() {}

  static void run(CheckBench bench) {
    for (var out : NumberChecks.STORED) {
      for (var inputType : NumberChecks.STORED) {
        bench.check(
            "reduce",
            inputType + " to " + out + ", every way",
            () -> all(bench, cases(inputType, out)));
      }
      bench.check("reduce", out + ", between signals", () -> signalled(bench, cases(out, out)));
      bench.check("reduce", out + ", GELU of a stored pre-activation", () -> activated(bench, out));
    }
    bench.check("reduce_any", "parts of different types", () -> all(bench, mixed()));
    for (var out : NumberChecks.STORED) {
      bench.check("reduce_any", out + ", into columns of wider rows", () -> apart(bench, out));
    }
  }

  /// Returns every combination of finishing operations, with shapes, part counts and scales in
  /// turn.
  private static List<Case> cases(ElementType inputType, ElementType out) {
    var cases = new ArrayList<Case>();
    int turns = Math.max(COMBINATIONS, SHAPES.size() * PART_COUNTS.size());
    for (int turn = 0; turn < turns; turn++) {
      int parts = PART_COUNTS.get(turn / SHAPES.size() % PART_COUNTS.size());
      cases.add(
          new Case(
              Collections.nCopies(parts, inputType),
              out,
              SHAPES.get(turn % SHAPES.size()),
              SCALES.get(turn % SCALES.size()),
              OUT_SCALES.get(turn % OUT_SCALES.size()),
              // 5 and 16 have no common factor: ways do not keep step with shapes.
              turn * 5 % COMBINATIONS,
              inputType == out && turn % 4 == 3));
    }
    return cases;
  }

  private static List<Case> mixed() {
    var all = List.copyOf(NumberChecks.STORED);
    var cases = new ArrayList<Case>();
    for (int ways = 0; ways < COMBINATIONS; ways++) {
      var parts = new ArrayList<ElementType>();
      for (int part = 0; part <= ways; part++) {
        parts.add(all.get((part + ways) % all.size()));
      }
      cases.add(
          new Case(
              parts,
              all.get(ways % all.size()),
              SHAPES.get(ways % SHAPES.size()),
              1,
              OUT_SCALES.get(ways % OUT_SCALES.size()),
              ways,
              false));
    }
    return cases;
  }

  /// Adds a part to columns of wider rows; the other columns must stay as they are.
  private static Optional<String> apart(CheckBench bench, ElementType out) {
    int rows = 37;
    int columns = 24;
    int stride = 40;
    int first = 8;
    var content = integers(out, rows * stride, 0);
    var added = integers(out, rows * columns, 1);
    var before = MemorySegment.ofArray(content);
    var more = MemorySegment.ofArray(added);
    try (var output = bench.buffer(content.length, 0).put(content);
        var part = bench.buffer(added.length, 0).put(added)) {
      var sum =
          new ReduceArguments.Part(output.address() + (long) first * out.bytes(), out, stride);
      var parts = List.of(sum, new ReduceArguments.Part(part.address(), out));
      var arguments = ReduceArguments.of(parts, sum, rows, columns, ReduceArguments.Finish.NONE);
      bench.kernels().reduce(bench.stream(), 2, arguments);
      var got = output.segment();
      for (int i = 0; i < rows * stride; i++) {
        int column = i % stride - first;
        boolean adds = column >= 0 && column < columns;
        float expected =
            out.load(before, i) + (adds ? out.load(more, i / stride * columns + column) : 0);
        if (out.load(got, i) != out.round(expected)) {
          return Optional.of(
              "number %d is %s instead of %s".formatted(i, out.load(got, i), expected));
        }
      }
      return output.guards().or(part::guards);
    }
  }

  /// Applies GELU to a pre-activation, which must stay as it is, with and without gaps.
  private static Optional<String> activated(CheckBench bench, ElementType out) {
    var side = ReduceArguments.side(out);
    var wrong = Optional.<String>empty();
    for (var shape : SHAPES) {
      for (int gap : new int[] {0, 8}) {
        float outScale = OUT_SCALES.get(shape.columns() % OUT_SCALES.size());
        wrong = wrong.or(() -> activated(bench, out, side, shape, gap, outScale));
      }
    }
    return wrong;
  }

  private static Optional<String> activated(
      CheckBench bench, ElementType out, ElementType side, Shape shape, int gap, float outScale) {
    int stride = shape.columns() + gap;
    var content = CheckBench.bytes(side, shape.rows() * stride, i -> Integers.at(3, i) / 2 - 1);
    var before = CheckBench.bytes(ElementType.FP32, 1, _ -> AMAX_BEFORE);
    try (var kept = bench.buffer(content.length, shape.shift() * side.bytes()).put(content);
        var output = bench.buffer((long) shape.count() * out.bytes(), shape.shift() * out.bytes());
        var amax = bench.buffer(before.length, 0).put(before)) {
      bench
          .kernels()
          .reduce(
              bench.stream(),
              shape.blocks(),
              ReduceArguments.of(
                  List.of(new ReduceArguments.Part(kept.address(), side, stride)),
                  new ReduceArguments.Part(output.address(), out),
                  shape.rows(),
                  shape.columns(),
                  new ReduceArguments.Finish(
                      1, false, 0, kept.address(), amax.address(), outScale)));
      if (kept.segment().mismatch(MemorySegment.ofArray(content)) >= 0) {
        return Optional.of("the pre-activation was changed");
      }
      var is = output.segment();
      var values = MemorySegment.ofArray(content);
      float largest = AMAX_BEFORE;
      for (int i = 0; i < shape.count(); i++) {
        int position = i / shape.columns() * stride + i % shape.columns();
        float value = gelu(side.load(values, position));
        largest = Math.max(largest, Math.abs(value));
        float should = out.round(value * outScale);
        float found = out.load(is, i);
        if (!(Math.abs(found - should) <= step(out, should) + 1e-6f * outScale)) {
          return Optional.of(
              "number %d of %s is %s instead of %s".formatted(i, shape, found, should));
        }
      }
      float found = ElementType.FP32.load(amax.segment(), 0);
      if (!(Math.abs(found - largest) <= 1e-6f * largest)) {
        return Optional.of("amax of %s is %s instead of %s".formatted(shape, found, largest));
      }
      return output.guards().or(kept::guards).or(amax::guards);
    }
  }

  private static Optional<String> all(CheckBench bench, List<Case> cases) {
    return CheckBench.firstWrong(cases.stream(), each -> one(bench, each));
  }

  /// Reduces between signals that the kernel raises for itself.
  private static Optional<String> signalled(CheckBench bench, List<Case> cases) {
    try (var words = bench.buffer(SIGNAL_BYTES, 0).put(new byte[SIGNAL_BYTES])) {
      var first = List.of(words.address(), words.address() + Long.BYTES);
      var last = List.of(words.address() + 2 * Long.BYTES);
      long arrived = words.address() + 3 * Long.BYTES;
      var signals = new Handshake(arrived, first, first, last, last);
      var turn = new AtomicLong();
      return CheckBench.firstWrong(
          cases.stream(),
          each -> {
            signals.set(turn.incrementAndGet(), false);
            return one(bench, each, sum -> bench.kernels().reduce(bench.stream(), sum, signals));
          });
    }
  }

  private static Optional<String> one(CheckBench bench, Case sum) {
    return one(
        bench,
        sum,
        arguments -> bench.kernels().reduce(bench.stream(), sum.shape().blocks(), arguments));
  }

  private static Optional<String> one(
      CheckBench bench, Case sum, Consumer<ReduceArguments> launch) {
    var out = sum.out();
    int count = sum.shape().count();
    var buffers = new ArrayList<CheckBench.Buffer>();
    try {
      var before = integers(out, count, 100);
      var output = buffer(bench, sum, out, before, buffers);
      var parts = new ArrayList<ReduceArguments.Part>();
      var contents = new ArrayList<MemorySegment>();
      for (int p = 0; p < sum.parts().size(); p++) {
        var type = sum.parts().get(p);
        boolean same = sum.inPlace() && p == 0;
        var content = same ? before : integers(type, count, p);
        contents.add(MemorySegment.ofArray(content));
        var part = same ? output : buffer(bench, sum, type, content, buffers);
        parts.add(new ReduceArguments.Part(part.address(), type));
      }
      var side = sum.side();
      var biasContent = integers(side, sum.shape().columns(), 200);
      var bias = buffer(bench, sum, side, biasContent, buffers);
      var kept = buffer(bench, sum, side, new byte[count * side.bytes()], buffers);
      var amaxContent = CheckBench.bytes(ElementType.FP32, 1, _ -> AMAX_BEFORE);
      var amax = buffer(bench, sum, ElementType.FP32, amaxContent, buffers);
      var finish =
          new ReduceArguments.Finish(
              sum.scale(),
              sum.does(ACCUMULATE),
              sum.does(BIAS) ? bias.address() : 0,
              sum.does(GELU) ? kept.address() : 0,
              sum.does(AMAX) ? amax.address() : 0,
              sum.outScale());
      var arguments =
          ReduceArguments.of(
              parts,
              new ReduceArguments.Part(output.address(), out),
              sum.shape().rows(),
              sum.shape().columns(),
              finish);
      var copies = new ArrayList<CheckBench.Buffer>();
      for (int copy = 0; copy < parts.size() % 3; copy++) {
        copies.add(buffer(bench, sum, out, new byte[before.length], buffers));
      }
      launch.accept(
          arguments
              .with(
                  copies.stream()
                      .map(copy -> new GpuCopy(copy.address(), output.address(), before.length))
                      .toList())
              .orElseThrow());
      var values = values(sum, contents, MemorySegment.ofArray(before), biasContent);
      var wrong =
          matches(sum, values, output.segment(), kept.segment(), amax.segment())
              .map((arguments.kernel() + " ")::concat);
      for (var copy : copies) {
        wrong =
            wrong.or(
                () ->
                    copy.segment().mismatch(output.segment()) < 0
                        ? Optional.empty()
                        : Optional.of("a copy differs from its sum"));
      }
      for (var buffer : buffers) {
        wrong = wrong.or(buffer::guards);
      }
      return wrong;
    } finally {
      buffers.forEach(CheckBench.Buffer::close);
    }
  }

  private static CheckBench.Buffer buffer(
      CheckBench bench,
      Case sum,
      ElementType type,
      byte[] content,
      List<CheckBench.Buffer> buffers) {
    var buffer = bench.buffer(content.length, sum.shape().shift() * type.bytes());
    buffers.add(buffer);
    return buffer.put(content);
  }

  private static byte[] integers(ElementType type, int count, long seed) {
    return CheckBench.bytes(type, count, i -> Integers.at(seed, i));
  }

  /// Returns the expected values before GELU.
  private static float[] values(
      Case sum, List<MemorySegment> parts, MemorySegment before, byte[] bias) {
    var values = new float[sum.shape().count()];
    for (int i = 0; i < values.length; i++) {
      float value = 0;
      for (int p = 0; p < parts.size(); p++) {
        value += sum.parts().get(p).load(parts.get(p), i);
      }
      value *= sum.scale();
      if (parts.size() > 1) {
        value = sum.parts().getFirst().round(value);
      }
      if (sum.does(ACCUMULATE)) {
        value += sum.out().load(before, i);
      }
      if (sum.does(BIAS)) {
        value += sum.side().load(MemorySegment.ofArray(bias), i % sum.shape().columns());
      }
      values[i] = value;
    }
    return values;
  }

  private static Optional<String> matches(
      Case sum, float[] values, MemorySegment out, MemorySegment kept, MemorySegment amax) {
    float largest = sum.does(AMAX) ? AMAX_BEFORE : 0;
    for (int i = 0; i < values.length; i++) {
      float value = values[i];
      if (sum.does(GELU)) {
        float is = sum.side().load(kept, i);
        if (is != sum.side().round(value)) {
          return Optional.of("pre-activation %d is %s instead of %s".formatted(i, is, value));
        }
        value = gelu(is);
      }
      largest = Math.max(largest, Math.abs(value));
      float should = sum.out().round(value * sum.outScale());
      float is = sum.out().load(out, i);
      float may = sum.does(GELU) ? step(sum.out(), should) + 1e-6f * sum.outScale() : 0;
      if (!(Math.abs(is - should) <= may)) {
        return Optional.of("number %d is %s instead of %s".formatted(i, is, should));
      }
    }
    float found = ElementType.FP32.load(amax, 0);
    float should = sum.does(AMAX) ? largest : AMAX_BEFORE;
    return Math.abs(found - should) <= (sum.does(GELU) ? 1e-6f * should : 0)
        ? Optional.empty()
        : Optional.of("amax is %s instead of %s".formatted(found, should));
  }

  private static float gelu(float x) {
    return (float) (0.5 * x * (1 + Math.tanh(SQRT_2_OVER_PI * (x + CUBIC * x * x * x))));
  }

  /// Largest difference between two roundings of nearly the same number.
  private static float step(ElementType type, float value) {
    return switch (type) {
      case FP32, TF32 -> 1e-6f + 1e-6f * Math.abs(value);
      case BF16 -> 1e-6f + 0x1p-7f * Math.abs(value);
      case FP16 -> 1e-6f + 0x1p-10f * Math.abs(value);
      case E4M3 -> 0x1p-9f + 0x1p-3f * Math.abs(value);
      case E5M2 -> 0x1p-16f + 0x1p-2f * Math.abs(value);
    };
  }
}
