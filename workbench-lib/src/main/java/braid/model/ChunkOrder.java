package braid.model;

import java.util.Locale;

/// Order in which a rank exchanges data with its peers.
public enum ChunkOrder {
  /// The next rank first, so that no rank serves all others at once.
  NEXT_FIRST,
  /// The previous rank first.
  PREVIOUS_FIRST,
  /// Rank 0 first, on every rank: all fetch from the same rank at once.
  RANK_ORDER;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
