package braid.schedule.check;

import braid.model.AttentionSpec;
import braid.schedule.Part;
import braid.schedule.Slice;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;

/// The value of a row as an expression of rows before the iteration. A source row is identified by
/// its distance from the row with the value, so that consecutive rows have equal values, and rows
/// that are off by one do not. The same applies to columns.
sealed interface Value {
  /// The origin of a source row.
  enum Origin {
    /// Written by the caller.
    GIVEN,
    /// An output as it was before the iteration.
    BEFORE,
    /// Not written.
    UNKNOWN
  }

  /// The row of a buffer that is `shift` rows after the row with the value.
  ///
  /// @param columns distance of the columns, in the same way
  record Rows(String buffer, int rank, long shift, long columns, Origin origin) implements Value {
    Rows(String buffer, int rank, long shift, Origin origin) {
      this(buffer, rank, shift, 0, origin);
    }

    private String rowsText(Slice at) {
      return "%s@%d[%d..%d]%s%s"
          .formatted(
              buffer,
              rank,
              at.start() + shift,
              at.end() - 1 + shift,
              columns == 0
                  ? ""
                  : " %d columns %s".formatted(Math.abs(columns), columns > 0 ? "on" : "back"),
              origin == Origin.BEFORE ? " as it was before" : "");
    }
  }

  /// The same row for all rows: a bias.
  record Repeated(Value row) implements Value {}

  /// A row times a weight.
  ///
  /// @param scales number of times it was scaled; [#UNSCALED] if it must not be
  record Product(Value row, List<Factor> weight, int scales) implements Value {
    static final int UNSCALED = -1;
  }

  /// Rows of a weight, relative to its first row.
  record Factor(Slice rows, Value value) {}

  /// A sum of values in any order, with the count of each.
  record Sum(Map<Value, Integer> terms) implements Value {
    static final Sum ZERO = new Sum(Map.of());

    private Value mapped(UnaryOperator<Value> change) {
      var mapped = new LinkedHashMap<Value, Integer>();
      terms.forEach((term, times) -> mapped.merge(change.apply(term), times, Integer::sum));
      return ofTerms(mapped);
    }
  }

  record Gelu(Value of) implements Value {}

  /// A value divided by the scale of an FP8 output.
  record Rescaled(Value of) implements Value {}

  /// Attention of a row to some keys. The columns of the query have the distance from the output's
  /// columns, those of the keys from the columns of the head that they are used for.
  ///
  /// @param spec of the query heads that share a head of key and value: attention of several such
  ///   groups has the same value in all of them
  /// @param distance distance of the row's position from the row
  /// @param within distance of the column within its group of heads; 0 if no group is divided
  /// @param keys keys with values, by position
  record Attended(AttentionSpec spec, Value query, long distance, long within, List<Block> keys)
      implements Value {
    public Attended {
      spec = spec.heads(spec.group(), 1);
      keys = Block.joined(keys);
    }

    /// Returns whether it is attention of the same row.
    boolean isOf(Attended other) {
      return spec.equals(other.spec)
          && query.equals(other.query)
          && distance == other.distance
          && within == other.within;
    }

    private Attended movedRows(long by) {
      return new Attended(spec, query.moved(by), distance + by, within, keys);
    }

    private Attended shiftedColumns(long by) {
      long group = (long) spec.heads() * spec.headSize();
      long rest = Math.floorMod(within + by, group);
      long whole = within + by - rest;
      return new Attended(
          spec,
          query.movedColumns(whole),
          distance,
          rest,
          keys.stream()
              .map(
                  each ->
                      new Block(each.positions(), each.rows().movedColumns(whole / spec.heads())))
              .toList());
    }

    private String rowsText(Slice at) {
      return "%s at position %d%s to %s"
          .formatted(
              query.text(at),
              at.start() + distance,
              within == 0 ? "" : " from column %d of a group of heads on".formatted(within),
              Block.text(seenBy(at).keys, "no keys"));
    }

    Attended with(Attended other) {
      var all = new ArrayList<>(keys);
      all.addAll(other.keys);
      return new Attended(spec, query, distance, within, all);
    }

    /// Returns the same attention without keys that none of the rows sees.
    Attended seenBy(Slice rows) {
      long first = spec.firstSeen(rows.start() + distance);
      long end = spec.lastSeen(rows.end() - 1 + distance) + 1;
      return new Attended(spec, query, distance, within, Block.within(keys, first, end));
    }
  }

  /// The log-sum-exp of an attention's scores: a column per head.
  record Statistics(Attended of) implements Value {}

  /// Rows that are used together, such as key and value.
  record Together(List<Value> of) implements Value {
    public Together {
      of = List.copyOf(of);
    }
  }

  /// The gradient of a row of an attention, by some of the rows on the other side: of the query by
  /// keys and values, of key and value by queries.
  ///
  /// Columns are those of one group of query heads and the head of key and value that they share:
  /// the gradients of several such groups have the same value in all of them.
  ///
  /// @param part the part that it is the gradient of
  /// @param row the row: query, output, LSE and the output's gradient, or key and value
  /// @param distance distance of the row's position from the row
  /// @param within distance of the column within its head or group of heads; 0 if none is divided
  /// @param others by position
  record Gradient(
      AttentionSpec spec, Part part, Value row, long distance, long within, List<Block> others)
      implements Value {
    public Gradient {
      spec = spec.heads(spec.group(), 1);
      others = Block.joined(others);
    }

    private boolean isOf(Gradient other) {
      return spec.equals(other.spec)
          && part == other.part
          && distance == other.distance
          && within == other.within
          && row.equals(other.row);
    }

    private Gradient movedRows(long by) {
      return new Gradient(spec, part, row.moved(by), distance + by, within, others);
    }

    private Gradient shiftedColumns(long by) {
      long width = (long) (part == Part.QUERY ? spec.heads() : 1) * spec.headSize();
      long rest = Math.floorMod(within + by, width);
      long groups = (within + by - rest) / width;
      return new Gradient(
          spec,
          part,
          movedGroups(row, groups),
          distance,
          rest,
          others.stream()
              .map(each -> new Block(each.positions(), movedGroups(each.rows(), groups)))
              .toList());
    }

    /// Returns the rows of one side for columns that are some groups of heads before.
    private Value movedGroups(Value side, long groups) {
      // Query, output, LSE and the output's gradient, or key and value.
      var all = ((Together) side).of();
      boolean ofQueries = all.size() > 2;
      var moved = new ArrayList<Value>();
      for (var each : all) {
        boolean isLse = ofQueries && moved.size() == 2;
        long heads = groups * (ofQueries ? spec.heads() : 1);
        moved.add(each.movedColumns(isLse ? heads : heads * spec.headSize()));
      }
      return new Together(moved);
    }

    /// Returns the gradient by the other rows `times` times more.
    private Gradient with(Gradient other, int times) {
      var all = new ArrayList<>(others);
      Collections.nCopies(times, other.others).forEach(all::addAll);
      return new Gradient(spec, part, row, distance, within, all);
    }

    /// Returns the same gradient without rows on the other side that do not affect any of the rows.
    private Gradient seenBy(Slice rows) {
      long start = rows.start() + distance;
      long last = rows.end() - 1 + distance;
      boolean ofQuery = part == Part.QUERY;
      long first = ofQuery ? spec.firstSeen(start) : spec.firstSeeing(start);
      long end = 1 + (ofQuery ? spec.lastSeen(last) : spec.lastSeeing(last));
      return new Gradient(spec, part, row, distance, within, Block.within(others, first, end));
    }

    private String rowsText(Slice at) {
      return "the gradient of %s in %s at position %d%s by %s"
          .formatted(
              part,
              row.text(at),
              at.start() + distance,
              within == 0 ? "" : " from column %d of its heads on".formatted(within),
              Block.text(seenBy(at).others, "nothing"));
    }
  }

  /// Rows of consecutive positions. A source row is identified by its distance from the position.
  record Block(Slice positions, Value rows) {
    /// Joins consecutive rows of one array, so that a value does not depend on how it was divided.
    private static List<Block> joined(List<Block> blocks) {
      var joined = new ArrayList<Block>();
      var sorted =
          blocks.stream().sorted(Comparator.comparingLong(one -> one.positions.start())).toList();
      for (var each : sorted) {
        long start = each.positions.start();
        if (!joined.isEmpty()
            && joined.getLast().positions.end() == start
            && joined.getLast().rows.equals(each.rows)) {
          start = joined.removeLast().positions.start();
        }
        joined.add(new Block(new Slice(start, each.positions.end() - start), each.rows));
      }
      return List.copyOf(joined);
    }

    /// Returns the blocks without positions before `first`, or from `end` on.
    private static List<Block> within(List<Block> blocks, long first, long end) {
      var within = new ArrayList<Block>();
      for (var each : blocks) {
        long from = Math.max(first, each.positions.start());
        long to = Math.min(end, each.positions.end());
        if (from < to) {
          within.add(new Block(new Slice(from, to - from), each.rows));
        }
      }
      return within;
    }

    private static String text(List<Block> blocks, String none) {
      return blocks.isEmpty()
          ? none
          : blocks.stream()
              .map(each -> each.rows.text(each.positions))
              .collect(Collectors.joining(" and "));
    }
  }

  /// Returns the sum of values, flattened into one.
  static Value sum(List<Value> values) {
    if (values.size() == 1) {
      return values.getFirst();
    }
    var terms = new LinkedHashMap<Value, Integer>();
    for (var value : values) {
      value.terms().forEach((term, times) -> add(term, times, terms));
    }
    return ofTerms(terms);
  }

  /// Adds a term to a sum. The gradients of one row become one gradient.
  private static void add(Value term, int times, Map<Value, Integer> into) {
    if (term instanceof Gradient gradient) {
      for (var each : into.keySet()) {
        if (each instanceof Gradient other && other.isOf(gradient)) {
          into.remove(each);
          into.put(other.with(gradient, times), 1);
          return;
        }
      }
    }
    into.merge(term, times, Integer::sum);
  }

  private static Value ofTerms(Map<Value, Integer> terms) {
    return terms.size() == 1 && terms.containsValue(1)
        ? terms.keySet().iterator().next()
        : new Sum(Collections.unmodifiableMap(terms));
  }

  default Map<Value, Integer> terms() {
    return this instanceof Sum sum ? sum.terms() : Map.of(this, 1);
  }

  /// Returns the value for a row that is `by` rows before.
  default Value moved(long by) {
    if (by == 0) {
      return this;
    }
    return switch (this) {
      case Rows rows ->
          new Rows(rows.buffer(), rows.rank(), rows.shift() + by, rows.columns(), rows.origin());
      case Repeated repeated -> repeated;
      case Product product ->
          new Product(product.row().moved(by), product.weight(), product.scales());
      case Sum sum -> sum.mapped(term -> term.moved(by));
      case Gelu gelu -> new Gelu(gelu.of().moved(by));
      case Rescaled stored -> new Rescaled(stored.of().moved(by));
      case Attended attended -> attended.movedRows(by);
      case Statistics statistics -> new Statistics(statistics.of().movedRows(by));
      case Together together ->
          new Together(together.of().stream().map(each -> each.moved(by)).toList());
      case Gradient gradient -> gradient.movedRows(by);
    };
  }

  /// Returns the value for columns that are `by` columns before.
  default Value movedColumns(long by) {
    if (by == 0) {
      return this;
    }
    return switch (this) {
      case Rows rows ->
          new Rows(rows.buffer(), rows.rank(), rows.shift(), rows.columns() + by, rows.origin());
      case Repeated repeated -> new Repeated(repeated.row().movedColumns(by));
      case Product product ->
          new Product(
              product.row(),
              product.weight().stream()
                  .map(factor -> new Factor(factor.rows(), factor.value().movedColumns(by)))
                  .toList(),
              product.scales());
      case Sum sum -> sum.mapped(term -> term.movedColumns(by));
      case Gelu gelu -> new Gelu(gelu.of().movedColumns(by));
      case Rescaled stored -> new Rescaled(stored.of().movedColumns(by));
      case Attended attended -> attended.shiftedColumns(by);
      case Statistics statistics ->
          new Statistics(statistics.of().shiftedColumns(by * statistics.of().spec().headSize()));
      case Together together ->
          new Together(together.of().stream().map(each -> each.movedColumns(by)).toList());
      case Gradient gradient -> gradient.shiftedColumns(by);
    };
  }

  /// Returns the value multiplied by the scales of its operands.
  default Value scaled() {
    return switch (this) {
      case Product product when product.scales() != Product.UNSCALED ->
          new Product(product.row(), product.weight(), product.scales() + 1);
      case Sum sum -> sum.mapped(Value::scaled);
      case Rows _,
          Repeated _,
          Product _,
          Gelu _,
          Rescaled _,
          Attended _,
          Statistics _,
          Together _,
          Gradient _ ->
          this;
    };
  }

  /// Returns whether all of it was written or given.
  default boolean isKnown() {
    return switch (this) {
      case Rows rows -> rows.origin() != Origin.UNKNOWN;
      case Repeated repeated -> repeated.row().isKnown();
      case Product product ->
          product.row().isKnown()
              && product.weight().stream().allMatch(factor -> factor.value().isKnown());
      case Sum sum -> sum.terms().keySet().stream().allMatch(Value::isKnown);
      case Gelu gelu -> gelu.of().isKnown();
      case Rescaled stored -> stored.of().isKnown();
      case Attended attended ->
          attended.query().isKnown()
              && attended.keys().stream().allMatch(each -> each.rows().isKnown());
      case Statistics statistics -> statistics.of().isKnown();
      case Together together -> together.of().stream().allMatch(Value::isKnown);
      case Gradient gradient ->
          gradient.row().isKnown()
              && gradient.others().stream().allMatch(each -> each.rows().isKnown());
    };
  }

  /// Formats the value of some rows, such as `input@1[0..3] x weight@1[0..7]`.
  default String text(Slice at) {
    return switch (this) {
      case Rows rows -> rows.rowsText(at);
      case Repeated repeated -> repeated.row().text(new Slice(0, 1));
      case Product product ->
          "%s x %s%s"
              .formatted(
                  product.row().text(at),
                  product.weight().stream()
                      .map(factor -> factor.value().text(factor.rows()))
                      .collect(Collectors.joining(" and ")),
                  product.scales() == 0
                      ? " not scaled"
                      : product.scales() > 1 ? " scaled %d times".formatted(product.scales()) : "");
      case Sum sum -> sum.terms().isEmpty() ? "zeros" : text(sum.terms(), at);
      case Gelu gelu -> "gelu(%s)".formatted(gelu.of().text(at));
      case Rescaled stored -> "(%s) / output scale".formatted(stored.of().text(at));
      case Attended attended -> "attention of " + attended.rowsText(at);
      case Statistics statistics -> "the lse of " + statistics.of().rowsText(at);
      case Together together ->
          together.of().stream().map(each -> each.text(at)).collect(Collectors.joining(" with "));
      case Gradient gradient -> gradient.rowsText(at);
    };
  }

  private static String text(Map<Value, Integer> terms, Slice at) {
    return terms.entrySet().stream()
        .map(
            term ->
                term.getKey().text(at)
                    + (term.getValue() == 1 ? "" : " %d times".formatted(term.getValue())))
        .sorted()
        .collect(Collectors.joining(" + "));
  }

  /// Returns the value of some rows without what does not affect them: keys that no row sees.
  default Value at(Slice rows) {
    return switch (this) {
      case Attended attended -> attended.seenBy(rows);
      case Statistics statistics -> new Statistics(statistics.of().seenBy(rows));
      case Gradient gradient -> gradient.seenBy(rows);
      default -> this;
    };
  }

  /// Describes the missing and extra terms compared with the expected value of the same rows.
  default String difference(Value expected, Slice at) {
    if (this instanceof Rescaled own && expected instanceof Rescaled other) {
      return own.of().difference(other.of(), at);
    }
    if (expected instanceof Rescaled other && equals(other.of())) {
      return "is not divided by the output's scale";
    }
    if (this instanceof Rescaled own && own.of().equals(expected)) {
      return "is divided by the output's scale once too often";
    }
    if (this instanceof Gelu own && expected instanceof Gelu other) {
      return own.of().difference(other.of(), at);
    }
    if (expected instanceof Gelu other && equals(other.of())) {
      return "lacks its gelu";
    }
    if (this instanceof Gelu own && own.of().equals(expected)) {
      return "has a gelu too much";
    }
    var missing = less(expected.terms(), terms());
    var extra = less(terms(), expected.terms());
    if (extra.isEmpty()) {
      return "lacks " + text(missing, at);
    }
    if (!missing.isEmpty()) {
      return "has %s instead of %s".formatted(text(extra, at), text(missing, at));
    }
    return equals(Sum.ZERO) ? "is not written" : "has too much: " + text(extra, at);
  }

  private static Map<Value, Integer> less(Map<Value, Integer> terms, Map<Value, Integer> others) {
    var rest = new LinkedHashMap<Value, Integer>();
    terms.forEach(
        (term, times) -> {
          int more = times - others.getOrDefault(term, 0);
          if (more > 0) {
            rest.put(term, more);
          }
        });
    return rest;
  }
}
