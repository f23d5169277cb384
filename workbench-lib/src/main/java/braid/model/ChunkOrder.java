package braid.model;

import java.util.Locale;

/// In which order a rank deals with the others.
public enum ChunkOrder {
  /// The next rank first, so that no rank is asked by all others at once.
  NEXT_FIRST,
  /// The previous rank first.
  PREVIOUS_FIRST,
  /// Rank 0 first, on every rank: all ask the same one at once.
  RANK_ORDER;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
