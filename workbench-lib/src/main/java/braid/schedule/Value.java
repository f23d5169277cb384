package braid.schedule;

import braid.model.AttentionSpec;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.Collectors;

/// The value of a row as an expression of rows before the iteration. A source row is identified by
/// its distance from the row with the value, so that consecutive rows have equal values, and rows
/// that are off by one do not.
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
  record Rows(String buffer, int rank, long shift, Origin origin) implements Value {}

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
  }

  record Gelu(Value of) implements Value {}

  /// A value divided by the scale of an FP8 output.
  record Rescaled(Value of) implements Value {}

  /// Attention of a row to some keys.
  ///
  /// @param distance distance of the row's position from the row
  /// @param keys by position
  record Attended(AttentionSpec spec, Value query, long distance, List<Keys> keys)
      implements Value {
    /// Joins consecutive keys of one array, so that the result does not depend on blocks.
    public Attended {
      var joined = new ArrayList<Keys>();
      for (var each :
          keys.stream().sorted(Comparator.comparingLong(key -> key.positions().start())).toList()) {
        long start = each.positions().start();
        if (!joined.isEmpty()
            && joined.getLast().positions().end() == start
            && joined.getLast().isOf(each)) {
          start = joined.removeLast().positions().start();
        }
        joined.add(
            new Keys(new Slice(start, each.positions().end() - start), each.key(), each.value()));
      }
      keys = List.copyOf(joined);
    }

    /// Returns whether it is attention of the same row.
    boolean isOf(Attended other) {
      return spec.equals(other.spec) && query.equals(other.query) && distance == other.distance;
    }

    private Attended movedRows(long by) {
      return new Attended(spec, query.moved(by), distance + by, keys);
    }

    private String rowsText(Slice at) {
      var seen = seenBy(at);
      return "%s at position %d to %s"
          .formatted(
              query.text(at),
              at.start() + distance,
              seen.keys.isEmpty()
                  ? "no keys"
                  : seen.keys.stream().map(Keys::text).collect(Collectors.joining(" and ")));
    }

    Attended with(Attended other) {
      var all = new ArrayList<>(keys);
      all.addAll(other.keys);
      return new Attended(spec, query, distance, all);
    }

    /// Returns the same attention without keys that none of the rows sees.
    Attended seenBy(Slice rows) {
      long first = spec.firstSeen(rows.start() + distance);
      long end = spec.lastSeen(rows.end() - 1 + distance) + 1;
      var seen = new ArrayList<Keys>();
      for (var each : keys) {
        long from = Math.max(first, each.positions().start());
        long to = Math.min(end, each.positions().end());
        if (from < to) {
          seen.add(new Keys(new Slice(from, to - from), each.key(), each.value()));
        }
      }
      return new Attended(spec, query, distance, seen);
    }
  }

  /// Keys and values of consecutive positions. A source row is identified by its distance from the
  /// position.
  record Keys(Slice positions, Value key, Value value) {
    private String text() {
      return "%s with %s".formatted(key.text(positions), value.text(positions));
    }

    private boolean isOf(Keys other) {
      return key.equals(other.key) && value.equals(other.value);
    }
  }

  /// The log-sum-exp of an attention's scores.
  record Statistics(Attended of) implements Value {}

  /// Returns the sum of values, flattened into one.
  static Value sum(List<Value> values) {
    if (values.size() == 1) {
      return values.getFirst();
    }
    var terms = new LinkedHashMap<Value, Integer>();
    for (var value : values) {
      value.terms().forEach((term, times) -> terms.merge(term, times, Integer::sum));
    }
    return ofTerms(terms);
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
      case Rows rows -> new Rows(rows.buffer(), rows.rank(), rows.shift() + by, rows.origin());
      case Repeated repeated -> repeated;
      case Product product ->
          new Product(product.row().moved(by), product.weight(), product.scales());
      case Sum sum -> {
        var terms = new LinkedHashMap<Value, Integer>();
        sum.terms().forEach((term, times) -> terms.put(term.moved(by), times));
        yield ofTerms(terms);
      }
      case Gelu gelu -> new Gelu(gelu.of().moved(by));
      case Rescaled stored -> new Rescaled(stored.of().moved(by));
      case Attended attended -> attended.movedRows(by);
      case Statistics statistics -> new Statistics(statistics.of().movedRows(by));
    };
  }

  /// Returns the value multiplied by the scales of its operands.
  default Value scaled() {
    return switch (this) {
      case Product product when product.scales() != Product.UNSCALED ->
          new Product(product.row(), product.weight(), product.scales() + 1);
      case Sum sum -> {
        var terms = new LinkedHashMap<Value, Integer>();
        sum.terms().forEach((term, times) -> terms.merge(term.scaled(), times, Integer::sum));
        yield ofTerms(terms);
      }
      case Rows _, Repeated _, Product _, Gelu _, Rescaled _, Attended _, Statistics _ -> this;
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
              && attended.keys().stream()
                  .allMatch(each -> each.key().isKnown() && each.value().isKnown());
      case Statistics statistics -> statistics.of().isKnown();
    };
  }

  /// Formats the value of some rows, such as `input@1[0..3] x weight@1[0..7]`.
  default String text(Slice at) {
    return switch (this) {
      case Rows rows ->
          "%s@%d[%d..%d]%s"
              .formatted(
                  rows.buffer(),
                  rows.rank(),
                  at.start() + rows.shift(),
                  at.end() - 1 + rows.shift(),
                  rows.origin() == Origin.BEFORE ? " as it was before" : "");
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

  /// Rows with one value, and the step that wrote it.
  record Piece(Slice rows, Value value, int writer) {
    /// Returns the part within other rows.
    Piece within(Slice other) {
      long start = Math.max(rows.start(), other.start());
      return new Piece(new Slice(start, Math.min(rows.end(), other.end()) - start), value, writer);
    }

    /// Returns the same rows moved by `by` rows.
    Piece shifted(long by) {
      return new Piece(rows.shifted(by), value.moved(-by), writer);
    }
  }

  /// Sums several lists of pieces of the same rows, where they overlap.
  static List<Piece> sum(List<List<Piece>> all, int writer) {
    return combined(all, writer, Value::sum);
  }

  /// Combines several lists of pieces of the same rows, where they overlap.
  static List<Piece> combined(
      List<List<Piece>> all, int writer, Function<List<Value>, Value> combine) {
    var cuts = new TreeSet<Long>();
    all.forEach(
        pieces ->
            pieces.forEach(
                piece -> {
                  cuts.add(piece.rows().start());
                  cuts.add(piece.rows().end());
                }));
    var sums = new ArrayList<Piece>();
    var next = new int[all.size()];
    long start = cuts.first();
    for (long end : cuts.tailSet(start, false)) {
      var values = new ArrayList<Value>();
      for (int i = 0; i < next.length; i++) {
        while (all.get(i).get(next[i]).rows().end() <= start) {
          next[i]++;
        }
        values.add(all.get(i).get(next[i]).value());
      }
      sums.add(new Piece(new Slice(start, end - start), combine.apply(values), writer));
      start = end;
    }
    return sums;
  }
}
