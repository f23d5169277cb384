package braid.schedule;

import braid.model.AttentionSpec;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// The tokens of one rank: consecutive positions of the sequence in consecutive rows, in one run or
/// in two.
public record Tokens(List<Run> runs) {
  /// Consecutive positions, the first of them in row `row`.
  public record Run(long row, Slice positions) {
    /// Returns the rows of some of its positions.
    public Slice rows(Slice some) {
      return some.shifted(row - positions.start());
    }

    public Slice rows() {
      return rows(positions);
    }

    /// Returns whether another run continues this one.
    public boolean isBefore(Run other) {
      return rows().end() == other.row() && positions.end() == other.positions().start();
    }
  }

  public Tokens {
    runs = List.copyOf(runs);
  }

  /// Returns the tokens of a rank.
  public static Tokens of(AttentionSpec spec, int ranks, int rank) {
    return switch (spec.layout()) {
      case CONTIGUOUS -> of(List.of(Slice.of(spec.sequence(), ranks, rank)));
      case ZIGZAG ->
          of(
              List.of(
                  Slice.of(spec.sequence(), 2 * ranks, rank),
                  Slice.of(spec.sequence(), 2 * ranks, 2 * ranks - 1 - rank)));
    };
  }

  /// Returns the tokens of consecutive ranks, in rows by position.
  public static Tokens ofGroup(AttentionSpec spec, int ranks, int first, int count) {
    return of(
        Slice.joined(
            IntStream.range(first, first + count)
                .mapToObj(rank -> of(spec, ranks, rank))
                .flatMap(tokens -> tokens.runs().stream())
                .map(Run::positions)
                .sorted(Comparator.comparingLong(Slice::start))
                .toList()));
  }

  /// Returns tokens of some positions, in rows one after another.
  public static Tokens of(List<Slice> parts) {
    var runs = new ArrayList<Run>();
    long row = 0;
    for (var positions : parts) {
      if (!positions.isEmpty()) {
        runs.add(new Run(row, positions));
      }
      row += positions.length();
    }
    return new Tokens(runs);
  }

  /// Returns the runs of a rank whose queries see no keys of another run of any rank.
  public static List<Run> seeingNoOther(AttentionSpec spec, int ranks, int rank) {
    return of(spec, ranks, rank).runs.stream()
        .filter(
            queries -> others(spec, ranks, queries).allMatch(keys -> seesNone(spec, queries, keys)))
        .toList();
  }

  /// Returns the runs of a rank whose keys are seen by no queries of another run of any rank.
  public static List<Run> seenByNoOther(AttentionSpec spec, int ranks, int rank) {
    return of(spec, ranks, rank).runs.stream()
        .filter(
            keys -> others(spec, ranks, keys).allMatch(queries -> seesNone(spec, queries, keys)))
        .toList();
  }

  private static Stream<Run> others(AttentionSpec spec, int ranks, Run than) {
    return IntStream.range(0, ranks)
        .mapToObj(rank -> of(spec, ranks, rank))
        .flatMap(tokens -> tokens.runs.stream())
        .filter(run -> !run.positions().equals(than.positions()));
  }

  private static boolean seesNone(AttentionSpec spec, Run queries, Run keys) {
    return seen(spec, queries, keys.positions()).isEmpty();
  }

  /// Returns the number of rows.
  public long rows() {
    return runs.stream().mapToLong(run -> run.positions().length()).sum();
  }

  /// Returns the rows of some positions of one run.
  public Slice rows(Slice positions) {
    return runs.stream()
        .filter(run -> run.positions().contains(positions.start()))
        .findFirst()
        .orElseThrow()
        .rows(positions);
  }

  /// Returns the position of a row.
  public long position(long row) {
    for (var run : runs) {
      if (run.rows().contains(row)) {
        return run.positions().start() + row - run.row();
      }
    }
    throw new IllegalArgumentException("no token is in row " + row);
  }

  /// Returns those of some positions that any of these tokens sees, in order and disjoint.
  public List<Slice> seen(AttentionSpec spec, Slice some) {
    // Positions come in order: later queries see no earlier begin and no earlier end.
    return Slice.joined(
        runs.stream()
            .map(queries -> seen(spec, queries, some))
            .filter(seen -> !seen.isEmpty())
            .toList());
  }

  /// Returns those of some positions that any query of a run sees; may be empty.
  public static Slice seen(AttentionSpec spec, Run queries, Slice some) {
    var positions = queries.positions();
    long start = Math.max(some.start(), spec.firstSeen(positions.start()));
    long end = Math.min(some.end(), spec.lastSeen(positions.end() - 1) + 1);
    return new Slice(start, Math.max(0, end - start));
  }
}
