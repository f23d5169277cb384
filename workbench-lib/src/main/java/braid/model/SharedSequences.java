package braid.model;

import braid.model.Tokens.Run;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Packed sequences, each with the consecutive ranks that share it.
record SharedSequences(List<Shared> all) {
  /// Work of the busiest rank ÷ the mean that is even enough: dividing sequences among more ranks
  /// would only exchange more keys.
  private static final double EVEN = 1.05;

  /// Sequences that are divided further; of many short ones, few are.
  private static final int MOST_STEPS = 100;

  /// A sequence and its ranks.
  ///
  /// @param run its positions, padding included
  /// @param work pairs of a query and a key that it sees
  record Shared(int sequence, Run run, double work, int first, int ranks) {
    private Shared among(int count) {
      return new Shared(sequence, run, work, 0, count);
    }

    private boolean has(int rank) {
      return first <= rank && rank < first + ranks;
    }

    /// Returns parts i and 2n-1-i of 2n of its rows, for the i-th of n ranks.
    private Stream<Run> parts(Packing rows, int rank) {
      return TokenLayout.zigzag(rows.whole(sequence), ranks, rank - first);
    }
  }

  private record Latest(AttentionSpec spec, int ranks, SharedSequences shared) {}

  /// Planners ask for the tokens of each rank in turn.
  private static volatile @Nullable Latest latest;

  static SharedSequences of(AttentionSpec spec, int ranks) {
    var known = latest;
    if (known == null || known.ranks != ranks || !known.spec.equals(spec)) {
      known = new Latest(spec, ranks, new SharedSequences(shared(spec, ranks)));
      latest = known;
    }
    return known.shared;
  }

  private static List<Shared> shared(AttentionSpec spec, int ranks) {
    var sequences =
        IntStream.range(0, spec.packing().sequences())
            .filter(i -> spec.packing().whole(i).length() > 0)
            .mapToObj(i -> shared(spec, i, ranks))
            .toList();
    return switch (spec.layout()) {
      case WHOLE_SEQUENCES -> placed(sequences.stream().map(each -> each.among(1)), ranks);
      case BY_WORK -> byWork(sequences, ranks);
      case PER_SEQUENCE, CONTIGUOUS, ZIGZAG, STRIPED -> sequences;
    };
  }

  private static Shared shared(AttentionSpec spec, int sequence, int ranks) {
    var run = spec.packing().whole(sequence);
    double work = spec.pairs(run.first(), run.end(), run.first(), run.end());
    return new Shared(sequence, run, work, 0, ranks);
  }

  /// Returns the runs of a rank's rows, in order.
  ///
  /// @param rows the queries' or the keys'
  Stream<Run> runs(Packing rows, int rank) {
    return all.stream().filter(each -> each.has(rank)).flatMap(each -> each.parts(rows, rank));
  }

  /// Returns the keys of the smallest part of the longest sequence that several ranks share, if
  /// there are several; 1 if they share none.
  int longestPart(Packing keys, int ranks) {
    return all.stream()
        .filter(each -> each.ranks > 1 || ranks == 1)
        .mapToInt(each -> (int) (keys.whole(each.sequence).length() / (2L * each.ranks)))
        .max()
        .orElse(1);
  }

  /// Divides each sequence among the fewest ranks whose share of it is at most the mean work of a
  /// rank. While the work is not even, one of the busiest rank's sequences is divided further.
  private static List<Shared> byWork(List<Shared> sequences, int ranks) {
    double mean = sequences.stream().mapToDouble(Shared::work).sum() / ranks;
    var counts = IntStream.rangeClosed(1, ranks).filter(count -> ranks % count == 0).toArray();
    var divided =
        placed(
            sequences.stream()
                .map(
                    each ->
                        each.among(
                            Arrays.stream(counts)
                                .filter(count -> each.work <= mean * count)
                                .findFirst()
                                .orElse(ranks))),
            ranks);
    var best = divided;
    for (int step = 0; step < MOST_STEPS && busiest(divided, ranks) > EVEN * mean; step++) {
      var further = further(divided, ranks, counts);
      if (further.isEmpty()) {
        break;
      }
      divided =
          further.stream()
              .filter(each -> busiest(each, ranks) <= EVEN * mean)
              .min(Comparator.comparingDouble(SharedSequences::exchanged))
              .orElseGet(
                  () ->
                      further.stream()
                          .min(Comparator.comparingDouble(each -> unevenness(each, ranks)))
                          .orElseThrow());
      best = busiest(divided, ranks) < busiest(best, ranks) ? divided : best;
    }
    return best;
  }

  /// Returns the divisions in which one of the busiest rank's sequences has more ranks.
  private static List<List<Shared>> further(List<Shared> divided, int ranks, int[] counts) {
    var work = work(divided, ranks);
    int busiest =
        IntStream.range(0, ranks)
            .boxed()
            .max(Comparator.comparingDouble(rank -> work[rank]))
            .orElseThrow();
    record Kind(double work, int ranks) {}
    var seen = new HashSet<Kind>();
    var further = new ArrayList<List<Shared>>();
    for (var each : divided) {
      if (each.has(busiest) && seen.add(new Kind(each.work, each.ranks))) {
        Arrays.stream(counts)
            .filter(count -> count > each.ranks)
            .mapToObj(
                count ->
                    placed(
                        divided.stream().map(any -> any.equals(each) ? any.among(count) : any),
                        ranks))
            .forEach(further::add);
      }
    }
    return further;
  }

  private static double busiest(List<Shared> divided, int ranks) {
    return Arrays.stream(work(divided, ranks)).max().orElse(0);
  }

  private static double unevenness(List<Shared> divided, int ranks) {
    return Arrays.stream(work(divided, ranks)).map(work -> work * work).sum();
  }

  /// Returns the tokens whose keys other ranks need, each counted once per rank.
  private static double exchanged(List<Shared> divided) {
    return divided.stream().mapToDouble(each -> each.run.length() * (each.ranks - 1.0)).sum();
  }

  private static double[] work(List<Shared> divided, int ranks) {
    var work = new double[ranks];
    for (var each : divided) {
      for (int rank = each.first; rank < each.first + each.ranks; rank++) {
        work[rank] += each.work / each.ranks;
      }
    }
    return work;
  }

  /// Gives sequences their ranks: those of more ranks first, then those of more work, each to the
  /// ranks whose busiest has the least work so far, then the fewest tokens, then the lowest number.
  /// The first of `count` ranks is a multiple of `count`.
  private static List<Shared> placed(Stream<Shared> sequences, int ranks) {
    var work = new double[ranks];
    var tokens = new double[ranks];
    var placed = new ArrayList<Shared>();
    for (var next :
        sequences
            .sorted(
                Comparator.comparingInt(Shared::ranks).thenComparingDouble(Shared::work).reversed())
            .toList()) {
      var shared =
          new Shared(
              next.sequence,
              next.run,
              next.work,
              leastLoaded(work, tokens, next.ranks),
              next.ranks);
      placed.add(shared);
      for (int rank = shared.first; rank < shared.first + shared.ranks; rank++) {
        work[rank] += next.work / next.ranks;
        tokens[rank] += (double) next.run.length() / next.ranks;
      }
    }
    placed.sort(Comparator.comparingLong(each -> each.run.first()));
    return placed;
  }

  /// Returns the first of the `count` ranks to take the next sequence.
  private static int leastLoaded(double[] work, double[] tokens, int count) {
    int least = 0;
    double leastWork = Double.POSITIVE_INFINITY;
    double leastTokens = 0;
    for (int first = 0; first < work.length; first += count) {
      double busiest = 0;
      double held = 0;
      for (int rank = first; rank < first + count; rank++) {
        busiest = Math.max(busiest, work[rank]);
        held += tokens[rank];
      }
      if (busiest < leastWork || (busiest == leastWork && held < leastTokens)) {
        least = first;
        leastWork = busiest;
        leastTokens = held;
      }
    }
    return least;
  }
}
