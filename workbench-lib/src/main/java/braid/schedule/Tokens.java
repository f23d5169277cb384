package braid.schedule;

import braid.model.AttentionSpec;
import braid.model.Positions;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// The tokens of one rank: runs of consecutive positions in consecutive rows, in the order of their
/// positions.
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
    var all = new Slice(0, spec.sequence());
    return of(
        switch (spec.layout()) {
          case CONTIGUOUS -> List.of(all.part(ranks, rank));
          case ZIGZAG -> zigzag(all, ranks, rank);
          case PER_SEQUENCE ->
              Slice.joined(
                  sequences(spec)
                      .flatMap(each -> zigzag(each, ranks, rank).stream())
                      .filter(part -> !part.isEmpty())
                      .toList());
          case WHOLE_SEQUENCES -> Slice.joined(wholeSequences(spec, ranks).get(rank));
        });
  }

  private static List<Slice> zigzag(Slice all, int ranks, int rank) {
    return List.of(all.part(2 * ranks, rank), all.part(2 * ranks, 2 * ranks - 1 - rank));
  }

  /// Returns the positions of each packed sequence, padding included.
  private static Stream<Slice> sequences(AttentionSpec spec) {
    var ends = spec.packing().padded();
    return IntStream.range(1, ends.size())
        .mapToObj(i -> new Slice(ends.get(i - 1), ends.get(i) - ends.get(i - 1)))
        .filter(each -> !each.isEmpty());
  }

  /// Returns the sequences of each rank, in the order of their positions.
  private static List<List<Slice>> wholeSequences(AttentionSpec spec, int ranks) {
    ToDoubleFunction<Slice> work =
        each -> spec.pairs(each.start(), each.end(), each.start(), each.end());
    var loads = IntStream.range(0, ranks).mapToObj(_ -> new Load()).toList();
    sequences(spec)
        .sorted(Comparator.comparingDouble(work).reversed())
        .forEach(
            each -> {
              var least =
                  Collections.min(
                      loads,
                      Comparator.comparingDouble((Load load) -> load.work)
                          .thenComparingLong(load -> load.tokens));
              least.sequences.add(each);
              least.work += work.applyAsDouble(each);
              least.tokens += each.length();
            });
    return loads.stream()
        .map(
            load -> load.sequences.stream().sorted(Comparator.comparingLong(Slice::start)).toList())
        .toList();
  }

  /// Sequences of a rank, with their work and tokens.
  private static final class Load {
    private final List<Slice> sequences = new ArrayList<>();
    private double work;
    private long tokens;
  }

  /// Returns the first rank without tokens; empty if each has some.
  public static OptionalInt without(AttentionSpec spec, int ranks) {
    return IntStream.range(0, ranks).filter(rank -> of(spec, ranks, rank).rows() == 0).findFirst();
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
    // The runs of all ranks have all positions.
    var all = new Slice(0, spec.sequence());
    return of(spec, ranks, rank).runs.stream()
        .filter(queries -> queries.positions().containsAll(seen(spec, queries, all)))
        .toList();
  }

  /// Returns the runs of a rank whose keys are seen by no queries of another run of any rank.
  public static List<Run> seenByNoOther(AttentionSpec spec, int ranks, int rank) {
    var all = new Slice(0, spec.sequence());
    var seen = new ArrayList<Map.Entry<Run, Slice>>();
    for (int other = 0; other < ranks; other++) {
      of(spec, ranks, other).runs.forEach(run -> seen.add(Map.entry(run, seen(spec, run, all))));
    }
    return of(spec, ranks, rank).runs.stream()
        .filter(
            keys ->
                seen.stream()
                    .filter(each -> !each.getKey().positions().equals(keys.positions()))
                    .allMatch(each -> each.getValue().and(keys.positions()).isEmpty()))
        .toList();
  }

  /// Returns the positions of these rows.
  public Positions positions() {
    return positions(runs);
  }

  /// Returns the positions of consecutive runs, with the row of the first as row 0.
  public static Positions positions(List<Run> some) {
    long first = some.isEmpty() ? 0 : some.getFirst().row();
    return new Positions(
        some.stream()
            .map(
                run ->
                    new Positions.Run(
                        run.row() - first, run.positions().start(), run.positions().length()))
            .toList());
  }

  /// Divides runs into those that follow each other in rows, rise in positions and have one key.
  public static <K> List<List<Run>> groups(List<Run> runs, Function<Run, K> key) {
    var groups = new ArrayList<List<Run>>();
    for (var run : runs) {
      var last = groups.isEmpty() ? List.<Run>of() : groups.getLast();
      if (last.isEmpty()
          || last.getLast().rows().end() != run.row()
          || last.getLast().positions().end() > run.positions().start()
          || !key.apply(last.getLast()).equals(key.apply(run))) {
        groups.add(new ArrayList<>());
      }
      groups.getLast().add(run);
    }
    return groups;
  }

  /// Returns the rows of consecutive runs.
  public static Slice rows(List<Run> some) {
    long first = some.getFirst().row();
    return new Slice(first, some.getLast().rows().end() - first);
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
