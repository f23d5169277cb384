package braid.model;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.function.Function;
import java.util.function.LongPredicate;
import java.util.function.Predicate;
import java.util.function.ToLongFunction;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Tokens in rows of a matrix, such as those of a rank: runs of positions in consecutive rows. Rows
/// and positions both rise. Rows between two runs have no token.
public record Tokens(List<Run> runs) {
  /// Positions from `first` on, `step` apart, in consecutive rows from `row` on.
  public record Run(long row, long first, long length, long step) {
    public Run {
      step = length == 1 ? 1 : step;
      if (length < 0 || step < 1) {
        throw new BraidException(
            "a run must have 0 or more positions, 1 or more apart, but has %d that are %d apart"
                .formatted(length, step));
      }
    }

    /// Consecutive positions.
    public Run(long row, long first, long length) {
      this(row, first, length, 1);
    }

    public long endRow() {
      return row + length;
    }

    /// Returns the last position.
    public long last() {
      return first + (length - 1) * step;
    }

    /// Returns the end of its positions, exclusive.
    public long end() {
      return last() + 1;
    }

    private boolean hasStep(long wanted) {
      return step == wanted || length == 1;
    }

    /// Returns how many of its positions are before another.
    private long before(long position) {
      return Math.clamp(Math.ceilDiv(position - first, step), 0, length);
    }

    /// Returns the part between two positions; its length may be 0.
    public Run within(long from, long to) {
      long skipped = before(from);
      return some(skipped, Math.max(skipped, before(to)));
    }

    /// Returns the part in some rows; its length may be 0.
    public Run inRows(long from, long end) {
      long skipped = Math.clamp(from - row, 0, length);
      return some(skipped, Math.clamp(end - row, skipped, length));
    }

    private Run some(long from, long end) {
      return new Run(row + from, first + from * step, end - from, step);
    }

    /// Returns a balanced part: the first ones are longer by one, if the length is no multiple.
    public Run part(int parts, int index) {
      long shortest = length / parts;
      long longer = length % parts;
      long from = index * shortest + Math.min(index, longer);
      return some(from, from + shortest + (index < longer ? 1 : 0));
    }

    /// Returns the same positions from another row on.
    public Run atRow(long start) {
      return new Run(start, first, length, step);
    }

    /// Returns both as one, if another continues this one in rows and positions.
    private Optional<Run> joined(Run next) {
      long apart = length > 1 || next.length == 1 ? step : next.step;
      return endRow() == next.row
              && last() + apart == next.first
              && (next.length == 1 || next.step == apart)
          ? Optional.of(new Run(row, first, length + next.length, apart))
          : Optional.empty();
    }

    /// Returns its positions in runs that are consecutive.
    private List<Run> consecutive() {
      return step == 1
          ? List.of(this)
          : IntStream.range(0, Math.toIntExact(length))
              .mapToObj(i -> part((int) length, i))
              .toList();
    }
  }

  /// Rows and keys of one packed sequence, as an attention of consecutive positions in which the
  /// same queries see the same keys. The rows are consecutive, and so are the keys.
  ///
  /// @param spec the attention of these positions: that of the block, or one sequence alone
  /// @param rows consecutive rows of queries, with the position of the first
  /// @param keys consecutive rows of keys, with the position of the first
  public record Pair(AttentionSpec spec, Run rows, Run keys) {}

  /// The mask of queries and keys that are equally far apart, such as two stripes. The position of
  /// query a is (a - b) · `step` + `apart` positions after the position of key b. So it depends on
  /// a - b alone whether they see each other: if a - b is `least` to `most`. Any such band is the
  /// mask of a causal window of most - least + 1 consecutive positions, whose first query has
  /// another distance from the first key. A window to both sides may become a band of an even
  /// number of diagonals, which only a causal window has.
  private record Band(long rows, long keys, long least, long most) {
    /// @param apart distance of the first query from the first key, in positions
    static Band of(AttentionSpec spec, long rows, long keys, long apart, long step) {
      long least = 1 - keys;
      long most = rows - 1;
      if (spec.isMasked()) {
        least = Math.max(least, Math.ceilDiv(-spec.ahead() - apart, step));
      }
      if (spec.window() > 0) {
        most = Math.floorDiv(spec.span() - 1 - spec.ahead() - apart, step);
      }
      return new Band(rows, keys, least, most);
    }

    private long firstRow() {
      return Math.max(0, least);
    }

    private long firstKey() {
      return Math.max(0, -most);
    }

    /// Returns the rows that see a key, if any does.
    Run seeing(Run queries) {
      return part(queries, firstRow(), Math.min(rows, keys + most));
    }

    /// Returns the keys that a row sees, if any is seen.
    Run seen(Run some) {
      return part(some, firstKey(), Math.min(keys, rows - least));
    }

    private static Run part(Run run, long from, long end) {
      return run.some(from, Math.max(from, end));
    }

    boolean isEmpty() {
      return least > Math.min(most, rows - 1) || most < 1 - keys;
    }

    boolean hasAll() {
      return least == 1 - keys && most >= rows - 1;
    }

    /// Returns the rows and keys that see each other, in consecutive positions. Some must.
    ///
    /// @param queries rows from the first query on
    /// @param some rows from the first key on
    Pair pair(AttentionSpec spec, long queries, long some) {
      var seeing = seeing(new Run(queries, 0, rows));
      var seen = seen(new Run(some, 0, keys));
      long shift = spec.isMasked() ? firstRow() - least - firstKey() : 0;
      long window = spec.window() == 0 ? 0 : most - least + 1;
      return new Pair(
          spec.causalBlock(Math.max(seen.length, shift + seeing.length), window),
          new Run(seeing.row, shift, seeing.length),
          new Run(seen.row, 0, seen.length));
    }
  }

  public Tokens {
    runs = List.copyOf(runs);
    for (int i = 0; i < runs.size(); i++) {
      var run = runs.get(i);
      long row = i == 0 ? 0 : runs.get(i - 1).endRow();
      if (run.length < 1 || run.row < row || (i > 0 && run.first < runs.get(i - 1).end())) {
        throw new BraidException(
            "runs must have 1 or more positions, and rows and positions must rise, but runs were %s; sort them"
                .formatted(runs));
      }
    }
  }

  /// Returns the tokens of a rank: its queries, and its keys if there are as many.
  public static Tokens of(AttentionSpec spec, int ranks, int rank) {
    return of(spec, spec.packing().queries(), ranks, rank);
  }

  /// Returns the keys of a rank.
  public static Tokens ofKeys(AttentionSpec spec, int ranks, int rank) {
    return of(spec, spec.packing().keys(), ranks, rank);
  }

  private static Tokens of(AttentionSpec spec, Packing rows, int ranks, int rank) {
    return inRows(
        spec.layout()
            .runs(spec, rows, ranks, rank)
            .flatMap(run -> spec.packing().placed(rows, run)));
  }

  /// Returns the rows of a rank among those of the queries, or of the keys, of all ranks: the
  /// tokens that a data loader gives it. They are the positions of [#of] if there are as many keys.
  ///
  /// @param rows [Packing#queries] or [Packing#keys] of the problem
  public static Tokens rowsOf(AttentionSpec spec, Packing rows, int ranks, int rank) {
    return inRows(spec.layout().runs(spec, rows, ranks, rank));
  }

  /// Returns the first rank without tokens, be it queries or keys; empty if each has some.
  public static OptionalInt without(AttentionSpec spec, int ranks) {
    return IntStream.range(0, ranks)
        .filter(
            rank ->
                of(spec, ranks, rank).runs.isEmpty() || ofKeys(spec, ranks, rank).runs.isEmpty())
        .findFirst();
  }

  /// Returns the tokens of several ranks, in rows by position.
  public static Tokens together(Stream<Tokens> all) {
    return inRows(
        all.flatMap(tokens -> tokens.runs.stream()).sorted(Comparator.comparingLong(Run::first)));
  }

  /// Returns consecutive positions from `first` on, from row 0 on.
  public static Tokens from(long first, long count) {
    return inRows(Stream.of(new Run(0, first, count)));
  }

  /// Returns positions in rows one after another, in as few runs as possible.
  private static Tokens inRows(Stream<Run> parts) {
    var runs = new ArrayList<Run>();
    long row = 0;
    for (var part : parts.filter(each -> each.length > 0).toList()) {
      runs.add(part.atRow(row));
      row += part.length;
    }
    return new Tokens(joined(runs));
  }

  /// Joins runs that continue each other in rows and positions.
  public static List<Run> joined(List<Run> some) {
    var all = new ArrayList<Run>();
    for (var run : some) {
      var both = all.isEmpty() ? Optional.<Run>empty() : all.getLast().joined(run);
      both.ifPresent(_ -> all.removeLast());
      all.add(both.orElse(run));
    }
    return all;
  }

  /// Returns its runs, with those divided whose positions are not consecutive.
  public List<Run> consecutive() {
    return runs.stream().flatMap(run -> run.consecutive().stream()).toList();
  }

  /// Divides runs into those that follow each other in rows, rise in positions and have one key.
  public static <K> List<Tokens> groups(List<Run> some, Function<Run, K> key) {
    var groups = new ArrayList<List<Run>>();
    for (var run : some) {
      var last = groups.isEmpty() ? List.<Run>of() : groups.getLast();
      if (last.isEmpty()
          || last.getLast().endRow() != run.row
          || last.getLast().end() > run.first
          || !key.apply(last.getLast()).equals(key.apply(run))) {
        groups.add(new ArrayList<>());
      }
      groups.getLast().add(run);
    }
    return groups.stream().map(Tokens::new).toList();
  }

  /// Returns the first row with a token, 0 if there is none.
  public long firstRow() {
    return runs.isEmpty() ? 0 : runs.getFirst().row;
  }

  /// Returns the end of the last row with a token.
  public long endRow() {
    return runs.isEmpty() ? 0 : runs.getLast().endRow();
  }

  /// Returns the first position, 0 if there is none.
  public long first() {
    return runs.isEmpty() ? 0 : runs.getFirst().first;
  }

  /// Returns the number of tokens.
  public long count() {
    return runs.stream().mapToLong(Run::length).sum();
  }

  /// Returns whether rows from 0 on have consecutive positions.
  public boolean areConsecutive() {
    return runs.isEmpty()
        || (runs.size() == 1 && runs.getFirst().row == 0 && runs.getFirst().step == 1);
  }

  /// Returns whether each of the first `rows` rows has a token.
  public boolean haveAll(long rows) {
    return count() == rows && endRow() == rows;
  }

  /// Returns whether all positions are in 0 to before `end`.
  public boolean areWithin(long end) {
    return runs.isEmpty() || (first() >= 0 && runs.getLast().end() <= end);
  }

  /// Returns whether all runs of others are among these.
  public boolean haveRunsOf(Tokens others) {
    return new HashSet<>(runs).containsAll(others.runs);
  }

  /// Returns whether a row has a token.
  public boolean has(long row) {
    int index = last(row, Run::row);
    return index >= 0 && row < runs.get(index).endRow();
  }

  /// Returns the position of a row that has a token.
  public long at(long row) {
    int index = last(row, Run::row);
    if (index < 0 || row >= runs.get(index).endRow()) {
      throw new IllegalArgumentException("row %d has no position in %s".formatted(row, runs));
    }
    var run = runs.get(index);
    return run.first + (row - run.row) * run.step;
  }

  /// Returns the end of the rows from `row` on that are all of one kind; at most the next row
  /// without a token, or a later one, and not far beyond a limit.
  ///
  /// @param kind padding, keys that no query sees, or queries that see nothing
  public long endOfKind(AttentionSpec spec, LongPredicate kind, long row, long limit) {
    boolean first = kind.test(at(row));
    long end = row;
    while (end < limit && has(end) && kind.test(at(end)) == first) {
      end = rowsBefore(spec.border(at(end)));
    }
    return end;
  }

  /// Returns the end of the rows with positions before `position`.
  public long rowsBefore(long position) {
    int index = last(position - 1, Run::first);
    return index < 0 ? 0 : runs.get(index).row + runs.get(index).before(position);
  }

  /// Returns the last run that begins at a row or position, or before; -1 if there is none.
  private int last(long place, ToLongFunction<Run> begin) {
    int low = 0;
    int high = runs.size();
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (begin.applyAsLong(runs.get(middle)) <= place) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low - 1;
  }

  /// Returns the tokens in rows `from` to before `end`, with `from` as row 0.
  public Tokens rows(long from, long end) {
    return new Tokens(
        runs.stream()
            .map(run -> run.inRows(from, end))
            .filter(run -> run.length > 0)
            .map(run -> run.atRow(run.row - from))
            .toList());
  }

  /// Returns the same tokens, with the first row as row 0.
  public Tokens fromFirstRow() {
    return rows(firstRow(), endRow());
  }

  /// Returns the runs that a condition holds for.
  public Tokens of(Predicate<Run> condition) {
    return new Tokens(runs.stream().filter(condition).toList());
  }

  /// Returns the tokens between two positions, in order.
  public Tokens within(long from, long to) {
    var some = new ArrayList<Run>();
    for (int i = Math.max(0, last(from, Run::first));
        i < runs.size() && runs.get(i).first < to;
        i++) {
      var part = runs.get(i).within(from, to);
      if (part.length > 0) {
        some.add(part);
      }
    }
    return new Tokens(some);
  }

  /// Returns the parts of a run of keys that any of these queries sees, in order and disjoint.
  public List<Run> seen(AttentionSpec spec, Run keys) {
    var seen = new ArrayList<Run>();
    long last = spec.lastSeeing(keys.last());
    // Tokens come in order: later queries see no earlier begin and no earlier end.
    for (int i = Math.max(0, last(spec.firstSeeing(keys.first), Run::first));
        i < runs.size() && runs.get(i).first <= last;
        i++) {
      for (var part : seen(spec, runs.get(i), keys)) {
        var before =
            !seen.isEmpty() && seen.getLast().endRow() >= part.row ? seen.removeLast() : part;
        seen.add(keys.inRows(before.row, Math.max(before.endRow(), part.endRow())));
      }
    }
    return seen;
  }

  /// Returns the parts of a run of keys that the queries of another see: one, or of stripes with a
  /// window one for each packed sequence.
  private static List<Run> seen(AttentionSpec spec, Run queries, Run keys) {
    var all = keys.within(spec.firstSeen(queries.first), spec.lastSeen(queries.last()) + 1);
    if (all.length == 0) {
      return List.of();
    }
    if (spec.window() == 0 || queries.step == 1 || !keys.hasStep(queries.step)) {
      return List.of(all);
    }
    var packing = spec.packing();
    var seen = new ArrayList<Run>();
    for (int i = packing.at(all.first); i <= packing.at(all.last()); i++) {
      var some = queries.within(packing.start(i), packing.end(i));
      var part = all.within(packing.start(i), packing.end(i));
      if (some.length > 0 && part.length > 0) {
        var band = Band.of(spec, some.length, part.length, some.first - part.first, queries.step);
        if (!band.isEmpty()) {
          seen.add(band.seen(part));
        }
      }
    }
    return seen;
  }

  /// Returns the runs of a rank whose queries see no keys of another run of any rank; none if
  /// queries and keys have different runs.
  public static Tokens seeingNoOther(AttentionSpec spec, int ranks, int rank) {
    return alike(spec, ranks, rank)
        .of(run -> areAll(run, spec.firstSeen(run.first), spec.lastSeen(run.last())));
  }

  /// Returns the runs of a rank whose keys are seen by no queries of another run of any rank; none
  /// if queries and keys have different runs.
  public static Tokens seenByNoOther(AttentionSpec spec, int ranks, int rank) {
    return alike(spec, ranks, rank)
        .of(run -> areAll(run, spec.firstSeeing(run.first), spec.lastSeeing(run.last())));
  }

  private static Tokens alike(AttentionSpec spec, int ranks, int rank) {
    return spec.packing().sides().isEmpty() ? of(spec, ranks, rank) : new Tokens(List.of());
  }

  /// Returns whether a run has all positions from one to another.
  private static boolean areAll(Run run, long from, long to) {
    return from > to || run.within(from, to + 1).length == to + 1 - from;
  }

  /// Returns pairs that have all queries and keys that see each other: [#pairs], or each run of
  /// queries with each run of keys.
  public static List<Pair> allPairs(AttentionSpec spec, Tokens queries, Tokens keys) {
    return pairs(spec, queries, keys)
        .orElseGet(
            () ->
                queries.runs.stream()
                    .flatMap(run -> keys.runs.stream().map(key -> new Pair(spec, run, key)))
                    .toList());
  }

  /// Returns the number of pairs of a query and a key that it sees.
  public static double count(AttentionSpec spec, Tokens queries, Tokens keys) {
    return allPairs(spec, queries, keys).stream()
        .mapToDouble(
            pair ->
                pair.spec.pairs(pair.rows.first, pair.rows.end(), pair.keys.first, pair.keys.end()))
        .sum();
  }

  /// Returns whether a query of a run sees any of these keys.
  public boolean areSeenBy(AttentionSpec spec, Run queries) {
    boolean any =
        rowsBefore(spec.firstSeen(queries.first)) < rowsBefore(spec.lastSeen(queries.last()) + 1);
    return any
        && (spec.window() == 0
            || queries.step == 1
            || runs.stream().anyMatch(keys -> sees(spec, queries, keys)));
  }

  /// Returns whether any of these queries sees any of some keys.
  public boolean see(AttentionSpec spec, Tokens keys) {
    return runs.stream().anyMatch(run -> keys.areSeenBy(spec, run));
  }

  /// Returns whether any query of a run sees any key of another.
  public static boolean sees(AttentionSpec spec, Run queries, Run keys) {
    return !seen(spec, queries, keys).isEmpty();
  }

  /// Returns the pairs of queries and keys that see each other, one for each packed sequence; empty
  /// if the mask of a sequence is not that of consecutive positions, so that a block has to be
  /// divided.
  public static Optional<List<Pair>> pairs(AttentionSpec spec, Tokens queries, Tokens keys) {
    var pairs = new ArrayList<Pair>();
    var packing = spec.packing();
    if (queries.runs.isEmpty() || keys.runs.isEmpty()) {
      return Optional.of(pairs);
    }
    int first = packing.at(Math.max(queries.first(), keys.first()));
    int last = packing.at(Math.min(queries.runs.getLast().last(), keys.runs.getLast().last()));
    for (int i = first; i <= last; i++) {
      var ofQueries = queries.within(packing.start(i), packing.end(i));
      var ofKeys = keys.within(packing.start(i), packing.end(i));
      if (ofQueries.runs.isEmpty() || ofKeys.runs.isEmpty()) {
        continue;
      }
      var seeing = ofQueries.of(run -> ofKeys.areSeenBy(spec, run));
      var seen = ofKeys.of(key -> seeing.runs.stream().anyMatch(run -> sees(spec, run, key)));
      if (!seeing.runs.isEmpty()) {
        var pair = pair(spec, seeing, seen);
        if (pair.isEmpty()) {
          return Optional.empty();
        }
        pairs.add(pair.get());
      }
    }
    return Optional.of(pairs);
  }

  /// Returns the queries and keys of one sequence as consecutive positions, if those have the mask.
  private static Optional<Pair> pair(AttentionSpec spec, Tokens queries, Tokens keys) {
    var firstQuery = queries.runs.getFirst();
    var firstKey = keys.runs.getFirst();
    boolean single = queries.runs.size() == 1 && keys.runs.size() == 1;
    if (single && firstQuery.step == 1 && firstKey.step == 1) {
      return Optional.of(new Pair(spec, firstQuery, firstKey));
    }
    long rows = queries.count();
    long keyRows = keys.count();
    if (queries.endRow() - firstQuery.row != rows || keys.endRow() - firstKey.row != keyRows) {
      return Optional.empty();
    }
    long step = single ? Math.max(firstQuery.step, firstKey.step) : 1;
    var apart =
        single && firstQuery.hasStep(step) && firstKey.hasStep(step)
            ? OptionalLong.of(firstQuery.first - firstKey.first)
            : spec.isMasked() ? ofRuns(spec, queries, keys) : OptionalLong.of(0);
    return apart.isEmpty()
        ? Optional.empty()
        : Optional.of(
            Band.of(spec, rows, keyRows, apart.getAsLong(), step)
                .pair(spec, firstQuery.row, firstKey.row));
  }

  /// Returns a distance of the first query from the first key that has the same mask, of runs of
  /// consecutive positions.
  private static OptionalLong ofRuns(AttentionSpec spec, Tokens queries, Tokens keys) {
    var firstQuery = queries.runs.getFirst();
    var firstKey = keys.runs.getFirst();
    // Queries and keys that overlap keep their distance.
    long distance = firstQuery.first - firstKey.first;
    for (var query : queries.runs) {
      for (var key : keys.runs) {
        if (query.first < key.end() && key.first < query.end()) {
          distance =
              query.first - key.first - (query.row - firstQuery.row) + (key.row - firstKey.row);
        }
      }
    }
    for (var query : queries.runs) {
      for (var key : keys.runs) {
        long apart = query.first - key.first;
        long instead = distance + (query.row - firstQuery.row) - (key.row - firstKey.row);
        var band = Band.of(spec, query.length, key.length, apart, 1);
        var other = Band.of(spec, query.length, key.length, instead, 1);
        boolean same =
            apart == instead
                || (band.isEmpty() && other.isEmpty())
                || (band.hasAll() && other.hasAll());
        if (query.step != 1 || key.step != 1 || !same) {
          return OptionalLong.empty();
        }
      }
    }
    return OptionalLong.of(distance);
  }
}
