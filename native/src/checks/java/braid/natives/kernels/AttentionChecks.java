package braid.natives.kernels;

import braid.natives.kernels.AttentionArguments.Heads;
import braid.natives.kernels.AttentionArguments.Mask;
import braid.natives.kernels.AttentionArguments.Rows;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.stream.Stream;

/// Checks of attention and its merge on random shapes, strides, alignments, masks and partial
/// results, against plain loops in double precision.
final class AttentionChecks {
  static final List<ElementType> TYPES =
      List.of(ElementType.FP32, ElementType.BF16, ElementType.FP16);

  private static final int CASES = 40;
  private static final int MERGES = 20;
  static final int[] SIZES = {1, 7, 8, 24, 40, 64, 64, 65, 96, 128, 128, 130, 136, 256, 300};
  private static final int MOST_ROWS = 160;
  private static final int MOST_KEYS = 200;
  private static final int MOST_MERGED = 5;
  private static final int FAR = 1000;
  private static final int MOST_COLUMNS = 1 << 16;

  /// Layout of rows: numbers between them, and the first one's distance from an aligned address.
  record Layout(int gap, int shift) {
    static Layout of(SplittableRandom random) {
      int[] gaps = {0, 0, 0, 8, 16, 3};
      int[] shifts = {0, 0, 0, 8, 16, 1};
      return new Layout(gaps[random.nextInt(gaps.length)], shifts[random.nextInt(shifts.length)]);
    }
  }

  /// Rows of a tensor in a guarded buffer, and their numbers on the host.
  @SuppressWarnings("ArrayRecordComponent") // Nobody compares them.
  record Held(
      CheckBench.Buffer buffer,
      ElementType type,
      int rows,
      int columns,
      Layout layout,
      float[] before) {
    static Held of(
        CheckBench bench,
        ElementType type,
        int rows,
        int columns,
        Layout layout,
        PlainAttention.Numbers numbers) {
      int stride = columns + layout.gap();
      var stored = new float[Math.max(1, rows * stride)];
      var content = CheckBench.bytes(type, stored.length, i -> numbers.at(i / stride, i % stride));
      for (int i = 0; i < stored.length; i++) {
        stored[i] = type.load(MemorySegment.ofArray(content), i);
      }
      var buffer = bench.buffer(content.length, layout.shift() * type.bytes()).put(content);
      return new Held(buffer, type, rows, columns, layout, stored);
    }

    long stride() {
      return (long) columns + layout.gap();
    }

    Rows argument() {
      return new Rows(buffer.address(), type, rows, stride());
    }

    double at(int row, int column) {
      return before[row * (columns + layout.gap()) + column];
    }

    /// Returns an error unless every number is within its bound, and nothing between or outside the
    /// rows was written.
    Optional<String> holds(String name, PlainAttention.Bounded expected) {
      var found = buffer.segment();
      var got = new double[rows * columns];
      for (int i = 0; i < rows * stride(); i++) {
        int row = (int) (i / stride());
        int column = (int) (i % stride());
        float number = type.load(found, i);
        if (column < columns) {
          got[row * columns + column] = number;
        } else if (number != before[i]) {
          return Optional.of("%s was written between rows, after row %d".formatted(name, row));
        }
      }
      return expected.wrong(name, got).or(buffer::guards);
    }
  }

  /// The tensors of a case, each with the next layout.
  static final class Tensors implements AutoCloseable {
    private final CheckBench bench;
    private final Iterator<Layout> layouts;
    private final List<CheckBench.Buffer> buffers = new ArrayList<>();

    Tensors(CheckBench bench, List<Layout> layouts) {
      this.bench = bench;
      this.layouts = layouts.iterator();
    }

    Held add(ElementType type, int rows, int columns, PlainAttention.Numbers numbers) {
      var held = Held.of(bench, type, rows, columns, layouts.next(), numbers);
      buffers.add(held.buffer());
      return held;
    }

    @Override
    public void close() {
      buffers.forEach(CheckBench.Buffer::close);
    }
  }

  private record Case(
      ElementType type,
      ElementType out,
      Heads heads,
      int rows,
      int keys,
      Mask mask,
      float scale,
      boolean continued,
      boolean finished,
      List<Layout> layouts,
      long seed) {
    static Case of(ElementType type, SplittableRandom random) {
      int group = 1 + random.nextInt(3);
      int rows = 1 + random.nextInt(MOST_ROWS);
      int keys = random.nextInt(MOST_KEYS);
      boolean causal = random.nextInt(3) > 0;
      boolean continued = random.nextInt(3) == 0;
      boolean finished = continued && random.nextBoolean();
      int size = SIZES[random.nextInt(SIZES.length)];
      var layouts = new ArrayList<Layout>();
      for (int i = 0; i < 5; i++) {
        layouts.add(Layout.of(random));
      }
      // Both outputs have one stride.
      layouts.add(layouts.get(3));
      return new Case(
          type,
          finished || (!continued && random.nextBoolean()) ? type : ElementType.FP32,
          new Heads(group * (1 + random.nextInt(2)), group, size),
          rows,
          keys,
          new Mask(
              FAR + random.nextInt(keys + 1),
              FAR + random.nextInt(rows),
              causal,
              causal && random.nextBoolean() ? 1 + random.nextInt(MOST_KEYS) : 0),
          (float) (1 / Math.sqrt(size)),
          continued,
          finished,
          layouts,
          random.nextLong());
    }

    boolean sees(int row, int key) {
      return AttentionChecks.sees(mask, row, key);
    }
  }

  private record Merge(
      ElementType type, int rows, int heads, int size, int parts, boolean inPlace, long seed) {
    static Merge of(ElementType type, SplittableRandom random) {
      return new Merge(
          type,
          1 + random.nextInt(MOST_ROWS),
          1 + random.nextInt(3),
          SIZES[random.nextInt(SIZES.length)],
          1 + random.nextInt(MOST_MERGED),
          type == ElementType.FP32 && random.nextBoolean(),
          random.nextLong());
    }
  }

  private AttentionChecks() {}

  static boolean sees(Mask mask, int row, int key) {
    long back = mask.queryPosition() + row - mask.keyPosition() - key;
    return !(mask.causal() && back < 0) && !(mask.window() > 0 && back >= mask.window());
  }

  static void run(CheckBench bench) {
    for (var type : TYPES) {
      bench.check(
          "attention",
          type + ", random problems",
          () -> random(type, CASES, Case::of, each -> attends(bench, each)));
      bench.check(
          "attention_merge",
          "to " + type,
          () -> random(type, MERGES, Merge::of, each -> merges(bench, each)));
    }
  }

  static PlainAttention.Numbers halves(long seed) {
    return (row, column) -> 0.5 * Integers.at(seed, row * (long) MOST_COLUMNS + column);
  }

  /// Returns true if a partial result has no keys for that row.
  private static boolean isEmpty(int row, int head) {
    return (row + head) % 5 == 0;
  }

  /// Returns the errors of a number of the type.
  static PlainAttention.Errors errors(ElementType type) {
    return switch (type) {
      case BF16 -> PlainAttention.Errors.BF16;
      case FP16 -> PlainAttention.Errors.FP16;
      default -> PlainAttention.Errors.FP32;
    };
  }

  /// Checks random cases of a type.
  static <T> Optional<String> random(
      ElementType type,
      int count,
      BiFunction<ElementType, SplittableRandom, T> draw,
      Function<T, Optional<String>> check) {
    var random = new SplittableRandom(type.code());
    return CheckBench.firstWrong(
        Stream.generate(() -> draw.apply(type, random)).limit(count), check);
  }

  private static Optional<String> attends(CheckBench bench, Case each) {
    var heads = each.heads;
    int rows = each.rows;
    int columns = heads.count() * heads.size();
    int kvColumns = columns / heads.group();
    long seed = each.seed;
    try (var all = new Tensors(bench, each.layouts)) {
      var query = all.add(each.type, rows, columns, halves(seed));
      var key = all.add(each.type, each.keys, kvColumns, halves(seed + 1));
      var value = all.add(each.type, each.keys, kvColumns, halves(seed + 2));
      var output = all.add(each.out, rows, columns, outputs(seed + 3, heads.size(), 0));
      var lse = all.add(ElementType.FP32, rows, heads.count(), statistics(seed + 4, 1, 0));
      var earlier =
          each.finished
              ? all.add(ElementType.FP32, rows, columns, outputs(seed + 3, heads.size(), 0))
              : output;
      var arguments =
          AttentionArguments.of(
              query.argument(),
              key.argument(),
              value.argument(),
              output.argument(),
              lse.argument(),
              heads,
              each.mask,
              each.scale,
              each.continued ? earlier.argument().address() : 0);
      bench.attention().attend(bench.stream(), arguments);
      var shape =
          new PlainAttention.Shape(
              rows, each.keys, heads.count(), heads.group(), heads.size(), each.scale);
      var expected =
          new PlainAttention(shape, each::sees, query::at, key::at, value::at)
              .forward(
                  PlainAttention.Errors.FP32,
                  earlier::at,
                  each.continued ? lse::at : (_, _) -> Double.NEGATIVE_INFINITY,
                  PlainAttention.all(rows));
      return output
          .holds("output", expected.output().stored(errors(each.out)))
          .or(() -> lse.holds("lse", expected.lse()))
          .map((arguments.kernel() + " ")::concat);
    }
  }

  /// Numbers of a partial output; 0 in rows without keys.
  private static PlainAttention.Numbers outputs(long seed, int size, int part) {
    return (row, column) -> isEmpty(row + part, column / size) ? 0 : halves(seed).at(row, column);
  }

  private static PlainAttention.Numbers statistics(long seed, int factor, int part) {
    return (row, head) ->
        isEmpty(row + part, head) ? Double.NEGATIVE_INFINITY : factor * halves(seed).at(row, head);
  }

  private static Optional<String> merges(CheckBench bench, Merge each) {
    int rows = each.rows;
    int heads = each.heads;
    int size = each.size;
    var outputs = new ArrayList<Held>();
    var statistics = new ArrayList<Held>();
    try (var all = new Tensors(bench, Collections.nCopies(2 * each.parts + 2, new Layout(0, 0)))) {
      for (int part = 0; part < each.parts; part++) {
        long seed = each.seed + 2L * part;
        outputs.add(all.add(ElementType.FP32, rows, heads * size, outputs(seed, size, part)));
        statistics.add(all.add(ElementType.FP32, rows, heads, statistics(seed + 1, 10, part)));
      }
      var output =
          each.inPlace ? outputs.getFirst() : all.add(each.type, rows, heads * size, (_, _) -> 1);
      var lse =
          each.inPlace
              ? statistics.getFirst()
              : all.add(ElementType.FP32, rows, heads, (_, _) -> 1);
      var addresses = new ArrayList<AttentionMergeArguments.Part>();
      for (int part = 0; part < each.parts; part++) {
        addresses.add(part(outputs.get(part), statistics.get(part)));
      }
      bench
          .attention()
          .merge(
              bench.stream(),
              AttentionMergeArguments.of(
                  addresses, part(output, lse), each.type, rows, heads, size));
      var merged = new double[rows * heads * size];
      var mergedBounds = new double[merged.length];
      var total = new double[rows * heads];
      var totalBounds = new double[total.length];
      for (int index = 0; index < total.length; index++) {
        int row = index / heads;
        int head = index % heads;
        double sum = statistics.stream().mapToDouble(one -> Math.exp(one.at(row, head))).sum();
        total[index] = Math.log(sum);
        totalBounds[index] = PlainAttention.FP32_ERROR * (1 + Math.abs(total[index]));
        for (int c = 0; c < size && sum > 0; c++) {
          for (int part = 0; part < each.parts; part++) {
            double share = Math.exp(statistics.get(part).at(row, head)) / sum;
            merged[index * size + c] += share * outputs.get(part).at(row, head * size + c);
          }
          mergedBounds[index * size + c] = PlainAttention.FP32_ERROR;
        }
      }
      return output
          .holds(
              "output", new PlainAttention.Bounded(merged, mergedBounds).stored(errors(each.type)))
          .or(() -> lse.holds("lse", new PlainAttention.Bounded(total, totalBounds)));
    }
  }

  private static AttentionMergeArguments.Part part(Held output, Held lse) {
    return new AttentionMergeArguments.Part(output.buffer().address(), lse.buffer().address());
  }
}
