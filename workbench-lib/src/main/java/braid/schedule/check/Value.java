package braid.schedule.check;

import braid.model.AttentionSpec;
import braid.schedule.Part;
import braid.schedule.Slice;
import braid.schedule.Step;
import java.util.ArrayList;
import java.util.Collections;
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
    private String rowsText(Slice rows) {
      return "%s@%d[%d..%d]%s%s"
          .formatted(
              buffer,
              rank,
              rows.start() + shift,
              rows.end() - 1 + shift,
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
  /// @param weight rows of the weight, relative to its first row
  /// @param scales number of times it was scaled; [#UNSCALED] if it must not be
  record Product(Value row, List<Piece> weight, int scales) implements Value {
    static final int UNSCALED = -1;
  }

  /// A sum of values in any order, with the count of each.
  record Sum(Map<Value, Integer> terms) implements Value {
    static final Sum ZERO = new Sum(Map.of());

    private Value mapped(UnaryOperator<Value> change) {
      var mapped = new LinkedHashMap<Value, Integer>();
      terms.forEach((term, times) -> mapped.merge(change.apply(term), times, Integer::sum));
      return ofTerms(mapped);
    }
  }

  /// A function of a finish.
  enum Function {
    GELU("lacks its gelu", "has a gelu too much"),
    /// Divides by the scale of an FP8 output.
    RESCALED(
        "is not divided by the output's scale", "is divided by the output's scale once too often"),
    /// Rounds heads to e4m3.
    ROUNDED("is not rounded to e4m3", "is rounded to e4m3 but must not be");

    private final String missing;
    private final String extra;

    Function(String missing, String extra) {
      this.missing = missing;
      this.extra = extra;
    }
  }

  record Applied(Function function, Value value) implements Value {}

  /// Rounded heads, as they are exchanged.
  ///
  /// @param value what was rounded, in columns from 0 on
  /// @param columns distance of the rounded columns from column 0
  record Rounded(Value value, int headSize, long columns) implements Value {
    Value restored() {
      long head = Step.Recode.rounded(headSize, headSize);
      return new Applied(Function.ROUNDED, value.moved(0, columns / head * headSize));
    }
  }

  /// The result of attention, or of its backward pass, for a row of queries by some keys and
  /// values, or for a row of key and value by some queries.
  ///
  /// Columns are those of one group of query heads and the head of key and value that they share:
  /// the results of several such groups have the same value in all of them.
  ///
  /// @param part the result: output, LSE, or the part that it is the gradient of
  /// @param row the row: the query, with output, LSE and the output's gradient in a backward pass;
  ///   or key and value
  /// @param distance distance of the row's position from the row
  /// @param within distance of the column within its head or group of heads; 0 if none is divided
  /// @param others rows of the other side by position
  record Attended(
      AttentionSpec spec, Part part, Value row, long distance, long within, List<Piece> others)
      implements Value {
    public Attended {
      spec = spec.heads(spec.group(), 1);
      others = Piece.joined(others);
    }

    boolean isGradient() {
      return part != Part.OUTPUT && part != Part.LSE;
    }

    private boolean isOfQuery() {
      return part != Part.KEY && part != Part.VALUE;
    }

    /// Returns whether it is the same part of the same row.
    boolean isOf(Attended other) {
      return spec.equals(other.spec)
          && part == other.part
          && distance == other.distance
          && within == other.within
          && row.equals(other.row);
    }

    private Attended withOthers(List<Piece> all) {
      return new Attended(spec, part, row, distance, within, all);
    }

    /// Returns the result by the other rows `times` times more.
    Attended with(Attended other, int times) {
      var all = new ArrayList<>(others);
      Collections.nCopies(times, other.others).forEach(all::addAll);
      return withOthers(all);
    }

    /// Returns the same result without other rows that do not affect any of the rows.
    private Attended seenBy(Slice rows) {
      long start = rows.start() + distance;
      long last = rows.end() - 1 + distance;
      long first = isOfQuery() ? spec.firstSeen(start) : spec.firstSeeing(start);
      long end = 1 + (isOfQuery() ? spec.lastSeen(last) : spec.lastSeeing(last));
      var seen = new Slice(first, Math.max(0, end - first));
      return withOthers(
          others.stream()
              .map(each -> each.within(seen))
              .filter(each -> !each.rows().isEmpty())
              .toList());
    }

    /// Returns the log-sum-exp of the scores of an output: a column per head.
    Attended lse() {
      return new Attended(spec, Part.LSE, row, distance, within, others);
    }

    private Attended movedBy(long rows, long columns) {
      long width = (long) (isOfQuery() ? spec.heads() : 1) * spec.headSize();
      long column = within + columns * (part == Part.LSE ? spec.headSize() : 1);
      long groups = Math.floorDiv(column, width);
      return new Attended(
          spec,
          part,
          movedGroups(row, groups, isOfQuery()).moved(rows, 0),
          distance + rows,
          Math.floorMod(column, width),
          Piece.mapped(others, other -> movedGroups(other, groups, !isOfQuery())));
    }

    /// Returns the rows of one side for columns that are some groups of heads before.
    private Value movedGroups(Value side, long groups, boolean ofQueries) {
      if (groups == 0) {
        return side;
      }
      long heads = groups * (ofQueries ? spec.heads() : 1);
      var moved = new ArrayList<Value>();
      for (var each : ((Together) side).parts()) {
        boolean isLse = ofQueries && moved.size() == 2;
        moved.add(each.moved(0, isLse ? heads : heads * spec.headSize()));
      }
      return new Together(moved);
    }

    private String attendedText(Slice rows) {
      var result =
          switch (part) {
            case OUTPUT -> "attention of";
            case LSE -> "the lse of";
            default -> "the gradient of %s in".formatted(part);
          };
      var seen =
          seenBy(rows).others.stream()
              .map(each -> each.value().text(each.rows()))
              .collect(Collectors.joining(" and "));
      return "%s %s at position %d%s %s"
          .formatted(
              result,
              row.text(rows),
              rows.start() + distance,
              within == 0
                  ? ""
                  : " from column %d of %s heads on"
                      .formatted(within, isGradient() ? "its" : "a group of"),
              isGradient()
                  ? "by " + (seen.isEmpty() ? "nothing" : seen)
                  : "to " + (seen.isEmpty() ? "no keys" : seen));
    }
  }

  /// Rows that are used together, such as key and value.
  record Together(List<Value> parts) implements Value {
    public Together {
      parts = List.copyOf(parts);
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
    if (term instanceof Attended gradient && gradient.isGradient()) {
      for (var each : into.keySet()) {
        if (each instanceof Attended other && other.isOf(gradient)) {
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

  /// Returns whether it is the output of an attention.
  default boolean isAttention() {
    return this instanceof Attended attended && attended.part() == Part.OUTPUT;
  }

  /// Returns the value for a row that is some rows, and columns, before.
  default Value moved(long rows, long columns) {
    if (rows == 0 && columns == 0) {
      return this;
    }
    return switch (this) {
      case Rows(var buffer, int rank, long shift, long shiftOfColumns, var origin) ->
          new Rows(buffer, rank, shift + rows, shiftOfColumns + columns, origin);
      case Repeated(var row) -> new Repeated(row.moved(0, columns));
      case Product(var row, var weight, int scales) ->
          new Product(
              row.moved(rows, 0),
              columns == 0 ? weight : Piece.mapped(weight, each -> each.moved(0, columns)),
              scales);
      case Sum sum -> sum.mapped(term -> term.moved(rows, columns));
      case Applied(var function, var value) -> new Applied(function, value.moved(rows, columns));
      case Rounded(var value, int headSize, long distance) ->
          new Rounded(value.moved(rows, 0), headSize, distance + columns);
      case Attended attended -> attended.movedBy(rows, columns);
      case Together(var parts) ->
          new Together(parts.stream().map(each -> each.moved(rows, columns)).toList());
    };
  }

  /// Returns the value multiplied by the scales of its operands.
  default Value scaled() {
    return switch (this) {
      case Product(var row, var weight, int scales) when scales != Product.UNSCALED ->
          new Product(row, weight, scales + 1);
      case Sum sum -> sum.mapped(Value::scaled);
      case Rows _, Repeated _, Product _, Applied _, Rounded _, Attended _, Together _ -> this;
    };
  }

  /// Returns whether all of it was written or given.
  default boolean isKnown() {
    return switch (this) {
      case Rows rows -> rows.origin() != Origin.UNKNOWN;
      case Repeated repeated -> repeated.row().isKnown();
      case Product(var row, var weight, int _) -> row.isKnown() && areKnown(weight);
      case Sum sum -> sum.terms().keySet().stream().allMatch(Value::isKnown);
      case Applied applied -> applied.value().isKnown();
      case Rounded rounded -> rounded.value().isKnown();
      case Attended attended -> attended.row().isKnown() && areKnown(attended.others());
      case Together together -> together.parts().stream().allMatch(Value::isKnown);
    };
  }

  private static boolean areKnown(List<Piece> pieces) {
    return pieces.stream().allMatch(piece -> piece.value().isKnown());
  }

  /// Formats the value of some rows, such as `input@1[0..3] x weight@1[0..7]`.
  default String text(Slice rows) {
    return switch (this) {
      case Rows each -> each.rowsText(rows);
      case Repeated repeated -> repeated.row().text(new Slice(0, 1));
      case Product(var row, var weight, int scales) ->
          "%s x %s%s"
              .formatted(
                  row.text(rows),
                  weight.stream()
                      .map(each -> each.value().text(each.rows()))
                      .collect(Collectors.joining(" and ")),
                  scales == 0
                      ? " not scaled"
                      : scales > 1 ? " scaled %d times".formatted(scales) : "");
      case Sum sum -> sum.terms().isEmpty() ? "zeros" : text(sum.terms(), rows);
      case Applied(var function, var value) ->
          switch (function) {
            case GELU -> "gelu(%s)".formatted(value.text(rows));
            case RESCALED -> "(%s) / output scale".formatted(value.text(rows));
            case ROUNDED -> "rounded(%s)".formatted(value.text(rows));
          };
      case Rounded rounded -> "rounded heads of " + rounded.value().text(rows);
      case Attended attended -> attended.attendedText(rows);
      case Together(var parts) ->
          parts.stream().map(each -> each.text(rows)).collect(Collectors.joining(" with "));
    };
  }

  private static String text(Map<Value, Integer> terms, Slice rows) {
    return terms.entrySet().stream()
        .map(
            term ->
                term.getKey().text(rows)
                    + (term.getValue() == 1 ? "" : " %d times".formatted(term.getValue())))
        .sorted()
        .collect(Collectors.joining(" + "));
  }

  /// Returns the value of some rows without what does not affect them: keys that no row sees.
  default Value at(Slice rows) {
    return this instanceof Attended attended ? attended.seenBy(rows) : this;
  }

  /// Describes the missing and extra terms compared with the expected value of the same rows.
  default String difference(Value expected, Slice rows) {
    if (this instanceof Applied own
        && expected instanceof Applied other
        && own.function() == other.function()) {
      return own.value().difference(other.value(), rows);
    }
    if (expected instanceof Applied other && equals(other.value())) {
      return other.function().missing;
    }
    if (this instanceof Applied own && own.value().equals(expected)) {
      return own.function().extra;
    }
    var missing = less(expected.terms(), terms());
    var extra = less(terms(), expected.terms());
    if (extra.isEmpty()) {
      return "lacks " + text(missing, rows);
    }
    if (!missing.isEmpty()) {
      return "has %s instead of %s".formatted(text(extra, rows), text(missing, rows));
    }
    return equals(Sum.ZERO) ? "is not written" : "has too much: " + text(extra, rows);
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
