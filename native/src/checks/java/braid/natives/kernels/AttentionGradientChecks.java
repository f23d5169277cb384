package braid.natives.kernels;

import braid.natives.kernels.AttentionArguments.Heads;
import braid.natives.kernels.AttentionArguments.Mask;
import braid.natives.kernels.AttentionChecks.Held;
import braid.natives.kernels.AttentionChecks.Layout;
import braid.natives.kernels.AttentionChecks.Tensors;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;

/// Checks of the gradients of attention on random shapes, strides, alignments, masks, packed
/// sequences and sums that begin or continue, against plain loops in double precision.
final class AttentionGradientChecks {
  private static final int CASES = 40;
  private static final int MOST_ROWS = 160;
  private static final int MOST_KEYS = 200;
  private static final int MOST_SEQUENCES = 4;
  private static final int FAR = 1000;

  /// @param packing borders of packed sequences: of each, the first row, the first key, and the
  ///   ends of its rows and keys before padding; empty for one sequence without padding
  /// @param narrow true for gradients in the type of the query where nothing is added to them
  private record Case(
      ElementType type,
      Heads heads,
      int rows,
      int keys,
      Mask mask,
      List<List<Integer>> packing,
      float scale,
      boolean addsQuery,
      boolean addsKeys,
      boolean narrow,
      List<Layout> layouts,
      long seed) {
    static Case of(ElementType type, SplittableRandom random) {
      int group = 1 + random.nextInt(3);
      int rows = 1 + random.nextInt(MOST_ROWS);
      int keys = random.nextInt(8) == 0 ? 0 : 1 + random.nextInt(MOST_KEYS);
      boolean packed = random.nextInt(3) == 0;
      boolean causal = random.nextInt(3) > 0;
      int size = AttentionChecks.SIZES[random.nextInt(AttentionChecks.SIZES.length)];
      var layouts = new ArrayList<Layout>();
      boolean plain = random.nextBoolean();
      for (int i = 0; i < 9; i++) {
        layouts.add(plain ? new Layout(0, 0) : Layout.of(random));
      }
      return new Case(
          type,
          new Heads(group * (1 + random.nextInt(2)), group, size),
          rows,
          keys,
          packed
              ? new Mask(0, 0, causal, 0)
              : new Mask(
                  FAR + random.nextInt(keys + 1),
                  FAR + random.nextInt(rows),
                  causal,
                  causal && random.nextBoolean() ? 1 + random.nextInt(MOST_KEYS) : 0),
          packed ? packing(random, rows, keys) : List.of(),
          (float) (1 / Math.sqrt(size)),
          random.nextBoolean(),
          random.nextBoolean(),
          random.nextBoolean(),
          layouts,
          random.nextLong());
    }

    ElementType gradientType(boolean adds) {
      return narrow && !adds ? type : ElementType.FP32;
    }

    private static List<List<Integer>> packing(SplittableRandom random, int rows, int keys) {
      int sequences = 1 + random.nextInt(MOST_SEQUENCES);
      var rowBorders = random.ints(sequences - 1, 0, rows + 1).sorted().boxed().toList();
      var keyBorders = random.ints(sequences - 1, 0, keys + 1).sorted().boxed().toList();
      var packing = new ArrayList<List<Integer>>();
      for (int i = 0; i < sequences; i++) {
        int row = i == 0 ? 0 : rowBorders.get(i - 1);
        int key = i == 0 ? 0 : keyBorders.get(i - 1);
        int rowEnd = i + 1 == sequences ? rows : rowBorders.get(i);
        int keyEnd = i + 1 == sequences ? keys : keyBorders.get(i);
        boolean padded = random.nextBoolean();
        packing.add(
            List.of(
                row,
                key,
                padded ? row + random.nextInt(rowEnd - row + 1) : rowEnd,
                padded ? key + random.nextInt(keyEnd - key + 1) : keyEnd));
      }
      return packing;
    }

    boolean isPaddedRow(int row) {
      return !packing.isEmpty()
          && packing.stream().noneMatch(each -> row >= each.get(0) && row < each.get(2));
    }

    boolean isPaddedKey(int key) {
      return !packing.isEmpty()
          && packing.stream().noneMatch(each -> key >= each.get(1) && key < each.get(3));
    }

    boolean sees(int row, int key) {
      if (!packing.isEmpty()) {
        // Rows and keys of a sequence have one end.
        return packing.stream()
            .anyMatch(
                each ->
                    row >= each.get(0)
                        && row < each.get(2)
                        && key >= each.get(1)
                        && key < each.get(3)
                        && !(mask.causal() && each.get(2) - row > each.get(3) - key));
      }
      return AttentionChecks.sees(mask, row, key);
    }

    /// Returns the first key that a row sees and the end of these, for every row; for rows without
    /// keys, positions that neither fall. With `transposed`, the rows that see a key.
    int[] table(boolean transposed) {
      int count = transposed ? keys : rows;
      int others = transposed ? rows : keys;
      var table = new int[2 * count];
      int from = 0;
      for (int i = 0; i < count; i++) {
        int first = others;
        int end = from;
        for (int j = 0; j < others; j++) {
          if (transposed ? sees(j, i) : sees(i, j)) {
            first = Math.min(first, j);
            end = j + 1;
          }
        }
        // An empty range lies between those before and after it.
        table[2 * i] = Math.max(first == others ? end : first, i == 0 ? 0 : table[2 * i - 2]);
        table[2 * i + 1] = end;
        from = end;
      }
      return table;
    }
  }

  private AttentionGradientChecks() {}

  static void run(CheckBench bench) {
    for (var type : AttentionChecks.TYPES) {
      bench.check(
          "attention_gradient",
          type + ", random problems",
          () -> AttentionChecks.random(type, CASES, Case::of, each -> check(bench, each)));
    }
  }

  private static Optional<String> check(CheckBench bench, Case each) {
    var heads = each.heads();
    int columns = heads.count() * heads.size();
    int kvColumns = columns / heads.group();
    long seed = each.seed();
    var type = each.type;
    int rows = each.rows;
    int keys = each.keys;
    var queryType = each.gradientType(each.addsQuery);
    var keysType = each.gradientType(each.addsKeys);
    try (var all = new Tensors(bench, each.layouts);
        var tables = bench.buffer(9L * (rows + keys), 0);
        var statistics =
            bench.buffer(AttentionGradientArguments.statisticsBytes(rows, heads.count()), 0)) {
      var query = all.add(type, rows, columns, ofRows(each, seed));
      var key = all.add(type, keys, kvColumns, ofKeys(each, seed + 1));
      var value = all.add(type, keys, kvColumns, ofKeys(each, seed + 2));
      var output = all.add(type, rows, columns, ofRows(each, seed + 3));
      var lse = all.add(ElementType.FP32, rows, heads.count(), lse(each, query, key));
      var outputGradient = all.add(type, rows, columns, ofRows(each, seed + 4));
      var ofQuery = all.add(queryType, rows, columns, halves(seed + 5));
      var ofKey = all.add(keysType, keys, kvColumns, halves(seed + 6));
      var ofValue = all.add(keysType, keys, kvColumns, halves(seed + 7));
      boolean packed = !each.packing().isEmpty();
      long seeing = tables.address() + 8L * each.rows();
      long tokens = seeing + 8L * each.keys();
      tables.put(tables(each));
      var mask = each.mask();
      var arguments =
          AttentionGradientArguments.of(
              AttentionArguments.of(
                  query.argument(),
                  key.argument(),
                  value.argument(),
                  output.argument(),
                  lse.argument(),
                  heads,
                  packed ? new Mask(0, 0, false, 0, tables.address(), tokens) : mask,
                  each.scale(),
                  0),
              new AttentionGradientArguments.Gradients(
                  outputGradient.argument(),
                  ofQuery.argument(),
                  ofKey.argument(),
                  ofValue.argument(),
                  each.addsQuery(),
                  each.addsKeys()),
              new AttentionGradientArguments.Memory(
                  statistics.address(), packed ? seeing : 0, packed ? tokens + each.keys() : 0));
      bench.attention().differentiate(bench.stream(), arguments);
      var expected =
          plain(each, query::at, key::at, value::at)
              .backward(
                  PlainAttention.Errors.FP32,
                  outputGradient::at,
                  output::at,
                  lse::at,
                  PlainAttention.all(each.rows()),
                  PlainAttention.all(each.keys()));
      return wrong("query gradient", ofQuery, expected.query(), each.addsQuery())
          .or(() -> wrong("key gradient", ofKey, expected.key(), each.addsKeys()))
          .or(() -> wrong("value gradient", ofValue, expected.value(), each.addsKeys()))
          .or(statistics::guards)
          .map((arguments.kernels() + " ")::concat)
          .or(() -> differsAgain(bench, each, arguments, List.of(ofQuery, ofKey, ofValue)));
    }
  }

  private static Optional<String> wrong(
      String name, Held held, PlainAttention.Bounded expected, boolean adds) {
    var sum = adds ? expected.plus(held::at, held.columns()) : expected;
    return held.holds(name, sum.stored(AttentionChecks.errors(held.type())));
  }

  private static PlainAttention plain(
      Case each,
      PlainAttention.Numbers query,
      PlainAttention.Numbers key,
      PlainAttention.Numbers value) {
    var heads = each.heads();
    return new PlainAttention(
        new PlainAttention.Shape(
            each.rows(), each.keys(), heads.count(), heads.group(), heads.size(), each.scale()),
        each::sees,
        query,
        key,
        value);
  }

  /// Returns an error if gradients that begin differ in any bit of a second run.
  private static Optional<String> differsAgain(
      CheckBench bench, Case each, AttentionGradientArguments arguments, List<Held> gradients) {
    if (each.addsQuery() || each.addsKeys()) {
      return Optional.empty();
    }
    var before = gradients.stream().map(one -> one.buffer().get()).toList();
    bench.attention().differentiate(bench.stream(), arguments);
    for (int i = 0; i < gradients.size(); i++) {
      int index = Arrays.mismatch(before.get(i), gradients.get(i).buffer().get());
      if (index >= 0) {
        return Optional.of("byte %d of gradient %d differs in a second run".formatted(index, i));
      }
    }
    return Optional.empty();
  }

  private static byte[] tables(Case each) {
    var bytes = ByteBuffer.allocate(9 * (each.rows() + each.keys())).order(ByteOrder.LITTLE_ENDIAN);
    Arrays.stream(each.table(false)).forEach(bytes::putInt);
    Arrays.stream(each.table(true)).forEach(bytes::putInt);
    for (int key = 0; key < each.keys(); key++) {
      bytes.put((byte) (each.isPaddedKey(key) ? 0 : 1));
    }
    for (int row = 0; row < each.rows(); row++) {
      bytes.put((byte) (each.isPaddedRow(row) ? 0 : 1));
    }
    return bytes.array();
  }

  private static PlainAttention.Numbers halves(long seed) {
    return AttentionChecks.halves(seed);
  }

  /// Numbers of rows of the query; padding is NaN.
  private static PlainAttention.Numbers ofRows(Case each, long seed) {
    return (row, column) -> each.isPaddedRow(row) ? Double.NaN : halves(seed).at(row, column);
  }

  private static PlainAttention.Numbers ofKeys(Case each, long seed) {
    return (key, column) -> each.isPaddedKey(key) ? Double.NaN : halves(seed).at(key, column);
  }

  /// LSE of the keys that a row sees, and of one more with score 0: -infinity only for padding.
  private static PlainAttention.Numbers lse(Case each, Held query, Held key) {
    var alone =
        plain(each, query::at, key::at, (_, _) -> 0)
            .forward(
                PlainAttention.Errors.FP32,
                (_, _) -> 0,
                (_, _) -> 0,
                PlainAttention.all(each.rows()))
            .lse()
            .values();
    int heads = each.heads().count();
    return (row, head) ->
        head >= heads
            ? 0 // a gap
            : each.isPaddedRow(row) ? Double.NEGATIVE_INFINITY : alone[row * heads + head];
  }
}
