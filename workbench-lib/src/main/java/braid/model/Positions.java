package braid.model;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;

/// Positions of rows: runs of consecutive positions in consecutive rows. Rows and positions both
/// rise. Rows between two runs have no position.
public record Positions(List<Run> runs) {
  /// Consecutive positions from `first` on, in rows from `row` on.
  public record Run(long row, long first, long length) {
    public long endRow() {
      return row + length;
    }

    /// Returns the end of its positions, exclusive.
    public long end() {
      return first + length;
    }

    /// Returns the part between two positions; its length may be 0.
    private Run within(long from, long to) {
      long start = Math.clamp(from, first, end());
      return new Run(row + start - first, start, Math.clamp(to, start, end()) - start);
    }
  }

  /// Rows and keys that the mask treats as if both had consecutive positions: those of one packed
  /// sequence. The rows are consecutive, and so are the keys.
  ///
  /// @param rows consecutive rows of queries, with the position of the first
  /// @param keys consecutive rows of keys, with the position of the first
  public record Pair(Run rows, Run keys) {}

  public Positions {
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

  /// Returns consecutive positions from `first` on, from row 0 on.
  public static Positions from(long first, long count) {
    return new Positions(count == 0 ? List.of() : List.of(new Run(0, first, count)));
  }

  /// Returns the end of the last row with a position.
  public long endRow() {
    return runs.isEmpty() ? 0 : runs.getLast().endRow();
  }

  /// Returns the first position, 0 if there is none.
  public long first() {
    return runs.isEmpty() ? 0 : runs.getFirst().first;
  }

  /// Returns the number of positions.
  public long count() {
    return runs.stream().mapToLong(Run::length).sum();
  }

  /// Returns whether rows 0 to before `rows` have consecutive positions.
  public boolean areConsecutive() {
    return runs.size() <= 1 && (runs.isEmpty() || runs.getFirst().row == 0);
  }

  /// Returns whether each of the first `rows` rows has a position.
  public boolean haveAll(long rows) {
    return count() == rows && endRow() == rows;
  }

  /// Returns whether all positions are in 0 to before `end`.
  public boolean areWithin(long end) {
    return runs.isEmpty() || (first() >= 0 && runs.getLast().end() <= end);
  }

  /// Returns whether a row has a position.
  public boolean has(long row) {
    int index = last(row, true);
    return index >= 0 && row < runs.get(index).endRow();
  }

  /// Returns the position of a row that has one.
  public long at(long row) {
    int index = last(row, true);
    if (index < 0 || row >= runs.get(index).endRow()) {
      throw new IllegalArgumentException("row %d has no position in %s".formatted(row, runs));
    }
    return runs.get(index).first + row - runs.get(index).row;
  }

  /// Returns the end of the rows from `row` on that are all padding, or all not, as `row` is. Each
  /// row has a position.
  public long endOfKind(AttentionSpec spec, long row) {
    boolean padding = spec.isPadding(at(row));
    var packing = spec.packing();
    long end = row;
    while (end < endRow() && spec.isPadding(at(end)) == padding) {
      long position = at(end);
      end = rowsBefore(padding ? packing.skipPadding(position) : packing.nextPadding(position));
    }
    return end;
  }

  /// Returns the end of the rows with positions before `position`.
  public long rowsBefore(long position) {
    int index = last(position - 1, false);
    return index < 0
        ? 0
        : runs.get(index).row + Math.min(runs.get(index).length, position - runs.get(index).first);
  }

  /// Returns the last run that begins at a row or position, or before; -1 if there is none.
  private int last(long place, boolean byRow) {
    int low = 0;
    int high = runs.size();
    while (low < high) {
      int middle = (low + high) >>> 1;
      var run = runs.get(middle);
      if ((byRow ? run.row : run.first) <= place) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low - 1;
  }

  /// Returns the positions of rows `from` to before `end`, with `from` as row 0.
  public Positions rows(long from, long end) {
    return new Positions(
        runs.stream()
            .map(run -> run.within(run.first + from - run.row, run.first + end - run.row))
            .filter(run -> run.length > 0)
            .map(run -> new Run(run.row - from, run.first, run.length))
            .toList());
  }

  /// Returns the runs that a condition holds for.
  public Positions of(Predicate<Run> condition) {
    return new Positions(runs.stream().filter(condition).toList());
  }

  /// Returns the positions between two, in order.
  private Positions within(long from, long to) {
    var some = new ArrayList<Run>();
    for (int i = Math.max(0, last(from, false)); i < runs.size() && runs.get(i).first < to; i++) {
      var part = runs.get(i).within(from, to);
      if (part.length > 0) {
        some.add(part);
      }
    }
    return new Positions(some);
  }

  /// Returns pairs that have all queries and keys that see each other: [#pairs], or each run of
  /// queries with each run of keys.
  public static List<Pair> allPairs(AttentionSpec spec, Positions queries, Positions keys) {
    return pairs(spec, queries, keys)
        .orElseGet(
            () ->
                queries.runs.stream()
                    .flatMap(run -> keys.runs.stream().map(key -> new Pair(run, key)))
                    .toList());
  }

  /// Returns the number of pairs of a query and a key that it sees.
  public static double count(AttentionSpec spec, Positions queries, Positions keys) {
    return allPairs(spec, queries, keys).stream()
        .mapToDouble(
            pair -> spec.pairs(pair.rows.first, pair.rows.end(), pair.keys.first, pair.keys.end()))
        .sum();
  }

  /// Returns whether a query of a run sees any of these keys.
  public boolean areSeenBy(AttentionSpec spec, Run queries) {
    return rowsBefore(spec.firstSeen(queries.first))
        < rowsBefore(spec.lastSeen(queries.end() - 1) + 1);
  }

  /// Returns whether any of these queries sees any of some keys.
  public boolean see(AttentionSpec spec, Positions keys) {
    return runs.stream().anyMatch(run -> keys.areSeenBy(spec, run));
  }

  /// Returns whether any query of a run sees any key of another.
  public static boolean sees(AttentionSpec spec, Run queries, Run keys) {
    return Math.max(keys.first, spec.firstSeen(queries.first))
        < Math.min(keys.end(), spec.lastSeen(queries.end() - 1) + 1);
  }

  /// Returns the pairs of queries and keys that see each other, one for each packed sequence; empty
  /// if the mask of a sequence is not that of consecutive positions, so that a block has to be
  /// divided.
  public static Optional<List<Pair>> pairs(AttentionSpec spec, Positions queries, Positions keys) {
    var pairs = new ArrayList<Pair>();
    var packing = spec.packing();
    if (queries.runs.isEmpty() || keys.runs.isEmpty()) {
      return Optional.of(pairs);
    }
    int last = packing.at(queries.runs.getLast().end() - 1);
    for (int i = packing.at(queries.first()); i <= last; i++) {
      var ofQueries = queries.within(packing.start(i), packing.end(i));
      var ofKeys = keys.within(packing.start(i), packing.end(i));
      var seeing = ofQueries.of(run -> ofKeys.areSeenBy(spec, run));
      var seen = ofKeys.of(key -> seeing.runs.stream().anyMatch(run -> sees(spec, run, key)));
      if (!seeing.runs.isEmpty()) {
        var pair = pair(spec, i, seeing, seen);
        if (pair.isEmpty()) {
          return Optional.empty();
        }
        pairs.add(pair.get());
      }
    }
    return Optional.of(pairs);
  }

  /// Returns the queries and keys of one sequence as if positions were consecutive, if the mask is
  /// the same then.
  private static Optional<Pair> pair(
      AttentionSpec spec, int sequence, Positions queries, Positions keys) {
    var firstQuery = queries.runs.getFirst();
    var firstKey = keys.runs.getFirst();
    if (queries.runs.size() == 1 && keys.runs.size() == 1) {
      return Optional.of(new Pair(firstQuery, firstKey));
    }
    long rows = queries.count();
    long keyRows = keys.count();
    if (queries.endRow() - firstQuery.row != rows || keys.endRow() - firstKey.row != keyRows) {
      return Optional.empty();
    }
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
        if (apart != instead
            && (relation(spec, query, key, apart) == Relation.SOME
                || relation(spec, query, key, apart) != relation(spec, query, key, instead))) {
          return Optional.empty();
        }
      }
    }
    // Both stay in the sequence.
    long start = spec.packing().start(sequence);
    if (!spec.isCausal()) {
      return Optional.of(
          new Pair(new Run(firstQuery.row, start, rows), new Run(firstKey.row, start, keyRows)));
    }
    long keyStart =
        Math.min(firstKey.first, spec.packing().end(sequence) - Math.max(keyRows, distance + rows));
    return Math.min(keyStart, keyStart + distance) < start
        ? Optional.empty()
        : Optional.of(
            new Pair(
                new Run(firstQuery.row, keyStart + distance, rows),
                new Run(firstKey.row, keyStart, keyRows)));
  }

  /// Keys of a run that the queries of another see.
  private enum Relation {
    NONE,
    SOME,
    ALL
  }

  /// @param apart distance of the first query from the first key
  private static Relation relation(AttentionSpec spec, Run queries, Run keys, long apart) {
    if (!spec.isCausal()) {
      return Relation.ALL;
    }
    long window = spec.window() == 0 ? Long.MAX_VALUE : spec.window();
    long least = apart - (keys.length - 1);
    long most = apart + queries.length - 1;
    return most < 0 || least >= window
        ? Relation.NONE
        : least >= 0 && most < window ? Relation.ALL : Relation.SOME;
  }
}
