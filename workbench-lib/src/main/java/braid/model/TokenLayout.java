package braid.model;

import java.util.Locale;

/// Division of a sequence's tokens among the ranks.
public enum TokenLayout {
  /// Rank i of n holds part i of n balanced parts. With causal attention later ranks have more
  /// work.
  CONTIGUOUS,
  /// Rank i of n holds parts i and 2n-1-i of 2n balanced parts, in this order, so that causal
  /// attention has equal work on all ranks.
  ZIGZAG;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
