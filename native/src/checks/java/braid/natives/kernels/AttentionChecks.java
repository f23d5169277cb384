package braid.natives.kernels;

import braid.natives.kernels.AttentionArguments.Heads;
import braid.natives.kernels.AttentionArguments.Mask;
import braid.natives.kernels.AttentionArguments.Rows;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;

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
      float[] before)
      implements AutoCloseable {
    static Held of(
        CheckBench bench,
        ElementType type,
        int rows,
        int columns,
        Layout layout,
        PlainAttention.Numbers numbers) {
      var content = new byte[Math.max(1, rows * (columns + layout.gap())) * type.bytes()];
      var segment = MemorySegment.ofArray(content);
      var stored = new float[content.length / type.bytes()];
      int stride = columns + layout.gap();
      for (int i = 0; i < stored.length; i++) {
        type.store(segment, i, (float) numbers.at(i / stride, i % stride));
        stored[i] = type.load(segment, i);
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

    @Override
    public void close() {
      buffer.close();
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
      List<Layout> layouts,
      long seed) {
    static Case of(ElementType type, SplittableRandom random) {
      int group = 1 + random.nextInt(3);
      int rows = 1 + random.nextInt(MOST_ROWS);
      int keys = random.nextInt(MOST_KEYS);
      boolean causal = random.nextInt(3) > 0;
      boolean continued = random.nextInt(3) == 0;
      int size = SIZES[random.nextInt(SIZES.length)];
      var layouts = new ArrayList<Layout>();
      for (int i = 0; i < 5; i++) {
        layouts.add(Layout.of(random));
      }
      return new Case(
          type,
          continued || random.nextBoolean() ? ElementType.FP32 : type,
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
          layouts,
          random.nextLong());
    }

    boolean sees(int row, int key) {
      long back = mask.queryPosition() + row - mask.keyPosition() - key;
      return !(mask.causal() && back < 0) && !(mask.window() > 0 && back >= mask.window());
    }
  }

  private AttentionChecks() {}

  static void run(CheckBench bench) {
    for (var type : TYPES) {
      bench.check("attention", type + ", random problems", () -> attends(bench, type));
      bench.check("attention_merge", "to " + type, () -> merges(bench, type));
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

  private static Optional<String> attends(CheckBench bench, ElementType type) {
    var random = new SplittableRandom(type.code());
    for (int i = 0; i < CASES; i++) {
      var each = Case.of(type, random);
      var wrong = attends(bench, each);
      if (wrong.isPresent()) {
        return wrong.map((each + ": ")::concat);
      }
    }
    return Optional.empty();
  }

  private static Optional<String> attends(CheckBench bench, Case each) {
    var heads = each.heads();
    int columns = heads.count() * heads.size();
    int kvColumns = columns / heads.group();
    long seed = each.seed();
    try (var query =
            held(bench, each.layouts(), 0, each.type(), each.rows(), columns, halves(seed));
        var key =
            held(bench, each.layouts(), 1, each.type(), each.keys(), kvColumns, halves(seed + 1));
        var value =
            held(bench, each.layouts(), 2, each.type(), each.keys(), kvColumns, halves(seed + 2));
        var output =
            held(
                bench,
                each.layouts(),
                3,
                each.out(),
                each.rows(),
                columns,
                (row, column) ->
                    isEmpty(row, column / heads.size()) ? 0 : halves(seed + 3).at(row, column));
        var lse =
            held(
                bench,
                each.layouts(),
                4,
                ElementType.FP32,
                each.rows(),
                heads.count(),
                (row, head) ->
                    isEmpty(row, head)
                        ? Double.NEGATIVE_INFINITY
                        : halves(seed + 4).at(row, head))) {
      var arguments =
          AttentionArguments.of(
              query.argument(),
              key.argument(),
              value.argument(),
              output.argument(),
              lse.argument(),
              heads,
              each.mask(),
              each.scale(),
              each.continued());
      bench.attention().attend(bench.stream(), arguments);
      var expected =
          new PlainAttention(
                  new PlainAttention.Shape(
                      each.rows(),
                      each.keys(),
                      heads.count(),
                      heads.group(),
                      heads.size(),
                      each.scale()),
                  each::sees,
                  query::at,
                  key::at,
                  value::at)
              .forward(
                  PlainAttention.Errors.FP32,
                  output::at,
                  each.continued() ? lse::at : (_, _) -> Double.NEGATIVE_INFINITY,
                  PlainAttention.all(each.rows()));
      return output
          .holds("output", expected.output().stored(errors(each.out())))
          .or(() -> lse.holds("lse", expected.lse()))
          .map((arguments.kernel() + " ")::concat);
    }
  }

  static Held held(
      CheckBench bench,
      List<Layout> layouts,
      int operand,
      ElementType type,
      int rows,
      int columns,
      PlainAttention.Numbers numbers) {
    return Held.of(bench, type, rows, columns, layouts.get(operand), numbers);
  }

  private static Optional<String> merges(CheckBench bench, ElementType type) {
    var random = new SplittableRandom(type.code());
    for (int i = 0; i < MERGES; i++) {
      int rows = 1 + random.nextInt(MOST_ROWS);
      int heads = 1 + random.nextInt(3);
      int size = SIZES[random.nextInt(SIZES.length)];
      int parts = 1 + random.nextInt(MOST_MERGED);
      boolean inPlace = type == ElementType.FP32 && random.nextBoolean();
      var wrong = merges(bench, type, rows, heads, size, parts, inPlace, random.nextLong());
      if (wrong.isPresent()) {
        return wrong.map(
            "%d parts of %d rows, %d heads of %d%s: "
                    .formatted(parts, rows, heads, size, inPlace ? ", in place" : "")
                ::concat);
      }
    }
    return Optional.empty();
  }

  private static Optional<String> merges(
      CheckBench bench,
      ElementType type,
      int rows,
      int heads,
      int size,
      int parts,
      boolean inPlace,
      long seed) {
    var none = new Layout(0, 0);
    var outputs = new ArrayList<Held>();
    var statistics = new ArrayList<Held>();
    try (var ownOutput = Held.of(bench, type, rows, heads * size, none, (_, _) -> 1);
        var ownLse = Held.of(bench, ElementType.FP32, rows, heads, none, (_, _) -> 1)) {
      for (int part = 0; part < parts; part++) {
        long from = seed + 2L * part;
        int skipped = part;
        outputs.add(
            Held.of(
                bench,
                ElementType.FP32,
                rows,
                heads * size,
                none,
                (row, column) ->
                    isEmpty(row + skipped, column / size) ? 0 : halves(from).at(row, column)));
        statistics.add(
            Held.of(
                bench,
                ElementType.FP32,
                rows,
                heads,
                none,
                (row, head) ->
                    isEmpty(row + skipped, head)
                        ? Double.NEGATIVE_INFINITY
                        : 10 * halves(from + 1).at(row, head)));
      }
      var output = inPlace ? outputs.getFirst() : ownOutput;
      var lse = inPlace ? statistics.getFirst() : ownLse;
      var addresses = new ArrayList<AttentionMergeArguments.Part>();
      for (int part = 0; part < parts; part++) {
        addresses.add(
            new AttentionMergeArguments.Part(
                outputs.get(part).buffer().address(), statistics.get(part).buffer().address()));
      }
      bench
          .attention()
          .merge(
              bench.stream(),
              AttentionMergeArguments.of(
                  addresses,
                  new AttentionMergeArguments.Part(
                      output.buffer().address(), lse.buffer().address()),
                  type,
                  rows,
                  heads,
                  size));
      var merged = new double[rows * heads * size];
      var mergedBounds = new double[merged.length];
      var total = new double[rows * heads];
      var totalBounds = new double[total.length];
      for (int index = 0; index < total.length; index++) {
        int row = index / heads;
        int head = index % heads;
        double sum = statistics.stream().mapToDouble(each -> Math.exp(each.at(row, head))).sum();
        total[index] = Math.log(sum);
        totalBounds[index] = PlainAttention.FP32_ERROR * (1 + Math.abs(total[index]));
        for (int c = 0; c < size && sum > 0; c++) {
          for (int part = 0; part < parts; part++) {
            double share = Math.exp(statistics.get(part).at(row, head)) / sum;
            merged[index * size + c] += share * outputs.get(part).at(row, head * size + c);
          }
          mergedBounds[index * size + c] = PlainAttention.FP32_ERROR;
        }
      }
      return output
          .holds("output", new PlainAttention.Bounded(merged, mergedBounds).stored(errors(type)))
          .or(() -> lse.holds("lse", new PlainAttention.Bounded(total, totalBounds)));
    } finally {
      outputs.forEach(Held::close);
      statistics.forEach(Held::close);
    }
  }
}
