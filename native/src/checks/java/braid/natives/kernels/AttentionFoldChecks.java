package braid.natives.kernels;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Random;

/// Checks of taking a library's attention and gradients into a partial result: rows that the
/// library did not compute, results that begin or continue, statistics alone, and rows without
/// keys.
final class AttentionFoldChecks {
  private static final double ERROR = 2e-6;

  /// @param rows of the result
  /// @param first of them that the library computed
  /// @param computed number of rows that the library computed
  private record Shape(int rows, int first, int computed, int heads, int headSize) {}

  private static final List<Shape> SHAPES =
      List.of(
          new Shape(5, 0, 5, 3, 8),
          new Shape(70, 7, 40, 4, 128),
          new Shape(33, 0, 20, 1, 256),
          new Shape(9, 8, 1, 2, 136),
          new Shape(1000, 100, 900, 5, 64));

  private AttentionFoldChecks() {}

  /// Forms of what a library computed.
  ///
  /// @param alone true to take the statistics alone
  /// @param finished true for an output in the library's type
  /// @param packed true for statistics row by row, of some of the rows
  /// @param sequences number of equal sequences, in which statistics are head by head
  private record Form(
      boolean continued, boolean alone, boolean finished, boolean packed, int sequences) {
    @Override
    public String toString() {
      return (alone ? "statistics alone" : continued ? "continued" : "begun")
          + (finished ? ", finished" : "")
          + (packed ? ", packed" : "")
          + (sequences > 1 ? ", %d sequences".formatted(sequences) : "");
    }
  }

  private static final List<Form> FORMS =
      List.of(
          new Form(false, false, false, false, 1),
          new Form(true, false, false, false, 1),
          new Form(true, false, true, false, 1),
          new Form(false, true, false, false, 1),
          new Form(false, false, false, true, 1),
          new Form(true, false, false, true, 1),
          new Form(true, false, true, true, 1),
          new Form(false, true, false, true, 1),
          new Form(true, false, true, false, 4),
          new Form(false, true, false, false, 4));

  static void run(CheckBench bench) {
    for (var type : List.of(ElementType.BF16, ElementType.FP16)) {
      for (var form : FORMS) {
        bench.check(
            "attention_fold",
            "of %s, %s".formatted(type, form),
            () -> CheckBench.firstWrong(SHAPES.stream(), shape -> fold(bench, type, shape, form)));
        bench.check(
            "attention_add",
            "of %s, %s".formatted(type, form),
            () -> CheckBench.firstWrong(SHAPES.stream(), shape -> add(bench, type, shape, form)));
      }
    }
  }

  /// Every third row is not computed.
  private static byte[] computed(int rows) {
    var computed = new byte[rows];
    for (int row = 0; row < rows; row++) {
      computed[row] = (byte) (row % 3 == 1 ? 0 : 1);
    }
    return computed;
  }

  private static Optional<String> add(CheckBench bench, ElementType type, Shape shape, Form form) {
    var random = new Random(shape.hashCode());
    int columns = shape.heads * shape.headSize;
    var part = numbers(random, shape.rows * columns);
    var sum = numbers(random, shape.rows * columns);
    var rows = computed(shape.rows);
    try (var parts = bench.buffer((long) part.length * Short.BYTES, 0);
        var sums = bench.buffer((long) sum.length * Float.BYTES, 0);
        var computed = bench.buffer(rows.length, 0)) {
      parts.put(bytes(type, part));
      sums.put(bytes(ElementType.FP32, sum));
      computed.put(rows);
      bench
          .attention()
          .add(
              bench.stream(),
              new AttentionKernels.Part(
                  type, parts.address(), shape.rows, columns, form.packed ? computed.address() : 0),
              sums.address(),
              columns,
              form.continued);
      for (int index = 0; index < sum.length; index++) {
        boolean has = !form.packed || rows[index / columns] != 0;
        sum[index] = (form.continued ? sum[index] : 0) + (has ? part[index] : 0);
      }
      return sums.holds(bytes(ElementType.FP32, sum)).or(() -> parts.holds(bytes(type, part)));
    }
  }

  private static Optional<String> fold(CheckBench bench, ElementType type, Shape shape, Form form) {
    boolean continued = form.continued;
    boolean alone = form.alone;
    var rows = computed(shape.computed);
    var random = new Random(shape.hashCode());
    int size = shape.headSize;
    var part = numbers(random, shape.computed * shape.heads * size);
    var stats = numbers(random, shape.heads * shape.computed);
    var output = numbers(random, shape.rows * shape.heads * size);
    var outType = form.finished ? type : ElementType.FP32;
    int sequences = shape.computed % form.sequences == 0 ? form.sequences : 1;
    int length = form.packed ? 0 : shape.computed / sequences;
    var lse = numbers(random, shape.rows * shape.heads);
    for (int i = 0; i < lse.length; i += 3) {
      lse[i] = Float.NEGATIVE_INFINITY;
      Arrays.fill(output, i * size, (i + 1) * size, 0);
    }
    try (var parts = bench.buffer((long) part.length * Short.BYTES, 0);
        var statistics = bench.buffer((long) stats.length * Float.BYTES, 0);
        var result = bench.buffer((long) output.length * Float.BYTES, 0);
        var written = bench.buffer((long) output.length * outType.bytes(), 0);
        var results = bench.buffer((long) lse.length * Float.BYTES, 0);
        var seeing = bench.buffer(rows.length, 0)) {
      seeing.put(rows);
      parts.put(bytes(type, part));
      statistics.put(bytes(ElementType.FP32, stats));
      result.put(bytes(ElementType.FP32, output));
      results.put(bytes(ElementType.FP32, lse));
      var taken =
          new AttentionKernels.Computed(
              type,
              parts.address(),
              statistics.address(),
              shape.computed,
              length,
              form.packed ? seeing.address() : 0);
      var target =
          new AttentionKernels.Result(
              continued ? result.address() : 0,
              (form.finished ? written : result).address(),
              form.finished,
              results.address());
      var kernels = bench.attention();
      if (alone) {
        kernels.foldStatistics(
            bench.stream(), taken, shape.first, shape.rows, shape.heads, results.address());
      } else {
        kernels.fold(bench.stream(), taken, shape.first, shape.rows, shape.heads, size, target);
      }
      var gotOutput = form.finished ? numbers(type, written) : floats(result.get());
      var gotLse = floats(results.get());
      for (int index = 0; index < lse.length; index++) {
        int row = index / shape.heads - shape.first;
        int head = index % shape.heads;
        boolean has = row >= 0 && row < shape.computed && (!form.packed || rows[row] != 0);
        double before = continued ? Math.exp(lse[index]) : 0;
        int stat =
            form.packed
                ? row * shape.heads + head
                : has ? (row / length * shape.heads + head) * length + row % length : 0;
        double added = has ? Math.exp(stats[stat]) : 0;
        double total = before + added;
        double expected = Math.log(total);
        if (!(gotLse[index] == expected || Math.abs(gotLse[index] - expected) <= 10 * ERROR)) {
          return Optional.of(
              "LSE %d is %s but should be %s".formatted(index, gotLse[index], expected));
        }
        for (int c = 0; c < size; c++) {
          double old = output[index * size + c];
          double own = has ? part[(row * shape.heads + head) * size + c] : 0;
          double value =
              alone
                  ? old
                  : total == 0 ? 0 : (before * (before == 0 ? 0 : old) + added * own) / total;
          float got = gotOutput[index * size + c];
          double bound = ERROR * (1 + Math.abs(old) + Math.abs(own));
          if (form.finished) {
            bound += Math.abs(value) * (type == ElementType.BF16 ? 0x1p-8 : 0x1p-11);
          }
          if (!(Math.abs(got - value) <= bound)) {
            return Optional.of(
                "number %d is %s but should be %s".formatted(index * size + c, got, value));
          }
        }
      }
      return result
          .guards()
          .or(results::guards)
          .or(written::guards)
          .or(() -> parts.holds(bytes(type, part)))
          .or(() -> statistics.holds(bytes(ElementType.FP32, stats)));
    }
  }

  /// Random numbers that all types represent.
  private static float[] numbers(Random random, int count) {
    var numbers = new float[count];
    for (int i = 0; i < count; i++) {
      numbers[i] = (random.nextInt(255) - 127) / 16f;
    }
    return numbers;
  }

  private static float[] numbers(ElementType type, CheckBench.Buffer buffer) {
    var bytes = buffer.get();
    var numbers = new float[bytes.length / type.bytes()];
    for (int i = 0; i < numbers.length; i++) {
      numbers[i] = type.load(MemorySegment.ofArray(bytes), i);
    }
    return numbers;
  }

  private static byte[] bytes(ElementType type, float... numbers) {
    return CheckBench.bytes(type, numbers.length, i -> numbers[i]);
  }

  private static float[] floats(byte[] bytes) {
    var numbers = new float[bytes.length / Float.BYTES];
    ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().get(numbers);
    return numbers;
  }
}
