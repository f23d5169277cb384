package braid.model;

import java.util.Locale;

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
  WHOLE_SEQUENCES;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
