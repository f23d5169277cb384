package braid.model;

import braid.model.Tokens.Run;
import java.util.Locale;
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
  /// Consecutive ranks share each packed sequence as in [#PER_SEQUENCE]: a long one many, a short
  /// one few or a single one, as few as keep the work of all ranks even within 5%, if that is
  /// possible. Their number divides the number of ranks. Training stacks call this dynamic or
  /// hybrid context parallelism.
  BY_WORK,
  /// Rank i of n holds positions i, i + n, i + 2n and so on, so that causal attention has equal
  /// work on all ranks, and equal work with each other rank. Only for methods that divide no heads.
  STRIPED;

  /// Returns the rows of a rank among those of all ranks, in order.
  ///
  /// @param rows the queries' or the keys'
  Stream<Run> runs(AttentionSpec spec, Packing rows, int ranks, int rank) {
    var all = new Run(0, 0, rows.positions());
    return switch (this) {
      case CONTIGUOUS -> Stream.of(all.part(ranks, rank));
      case ZIGZAG -> zigzag(all, ranks, rank);
      case PER_SEQUENCE, WHOLE_SEQUENCES, BY_WORK ->
          SharedSequences.of(spec, ranks).runs(rows, rank);
      case STRIPED -> Stream.of(new Run(0, rank, Math.ceilDiv(all.length() - rank, ranks), ranks));
    };
  }

  static Stream<Run> zigzag(Run all, int ranks, int rank) {
    return Stream.of(all.part(2 * ranks, rank), all.part(2 * ranks, 2 * ranks - 1 - rank));
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
