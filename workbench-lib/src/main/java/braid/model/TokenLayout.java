package braid.model;

import braid.model.Tokens.Run;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Locale;
import java.util.PriorityQueue;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Division of a sequence's tokens among the ranks.
public enum TokenLayout {
  /// Rank i of n holds part i of n balanced parts. With causal attention later ranks have more
  /// work.
  CONTIGUOUS,
  /// Rank i of n holds parts i and 2n-1-i of 2n balanced parts, in this order, so that causal
  /// attention has equal work on all ranks.
  ZIGZAG,
  /// Rank i of n holds parts i and 2n-1-i of 2n balanced parts of each packed sequence, its padding
  /// included. Each sequence has equal work on all ranks, whatever the lengths.
  PER_SEQUENCE,
  /// A rank holds whole packed sequences, with their padding, and needs no keys of others. The
  /// sequence with the most work goes first, each to the rank with the least work so far, then with
  /// the fewest tokens, then with the lowest number.
  WHOLE_SEQUENCES,
  /// Rank i of n holds positions i, i + n, i + 2n and so on, so that causal attention has equal
  /// work on all ranks, and equal work with each other rank. Only for methods that divide no heads,
  /// and without a window.
  STRIPED;

  /// Returns the positions of a rank's rows, in order; rows begin anywhere.
  Stream<Run> runs(AttentionSpec spec, int ranks, int rank) {
    var all = new Run(0, 0, spec.sequence());
    return switch (this) {
      case CONTIGUOUS -> Stream.of(all.part(ranks, rank));
      case ZIGZAG -> zigzag(all, ranks, rank);
      case PER_SEQUENCE -> sequences(spec).flatMap(each -> zigzag(each, ranks, rank));
      case WHOLE_SEQUENCES -> wholeSequences(spec, ranks, rank);
      case STRIPED -> Stream.of(new Run(0, rank, Math.ceilDiv(all.length() - rank, ranks), ranks));
    };
  }

  private static Stream<Run> zigzag(Run all, int ranks, int rank) {
    return Stream.of(all.part(2 * ranks, rank), all.part(2 * ranks, 2 * ranks - 1 - rank));
  }

  /// Returns the positions of each packed sequence, padding included.
  private static Stream<Run> sequences(AttentionSpec spec) {
    var ends = spec.packing().padded();
    return IntStream.range(1, ends.size())
        .mapToObj(i -> new Run(0, ends.get(i - 1), ends.get(i) - ends.get(i - 1)))
        .filter(each -> each.length() > 0);
  }

  private static Stream<Run> wholeSequences(AttentionSpec spec, int ranks, int rank) {
    record Sequence(Run run, double work) {}
    record Load(double work, long tokens, int rank) {}
    var loads =
        new PriorityQueue<>(
            Comparator.comparingDouble(Load::work)
                .thenComparingLong(Load::tokens)
                .thenComparingInt(Load::rank));
    IntStream.range(0, ranks).forEach(each -> loads.add(new Load(0, 0, each)));
    var own = new ArrayList<Run>();
    sequences(spec)
        .map(run -> new Sequence(run, spec.pairs(run.first(), run.end(), run.first(), run.end())))
        .sorted(Comparator.comparingDouble(Sequence::work).reversed())
        .forEach(
            next -> {
              var least = loads.remove();
              long tokens = least.tokens + next.run.length();
              loads.add(new Load(least.work + next.work, tokens, least.rank));
              if (least.rank == rank) {
                own.add(next.run);
              }
            });
    return own.stream().sorted(Comparator.comparingLong(Run::first));
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
