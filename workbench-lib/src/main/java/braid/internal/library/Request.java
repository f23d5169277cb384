package braid.internal.library;

/// A collective that a library is asked for; all ranks ask for the same.
///
/// @param root of a broadcast; of no meaning else
public record Request(Kind kind, Piece x, Piece y, int root) {
  /// What is made, with `x` and `y` as [braid.Collectives] has them.
  public enum Kind {
    ALL_GATHER,
    REDUCE_SCATTER,
    ALL_REDUCE,
    ALL_TO_ALL,
    /// `y` is `x`.
    BROADCAST
  }

  /// Bytes that come to a rank, or leave it, at least.
  public long linkBytes(int ranks) {
    long others = ranks - 1L;
    return switch (kind) {
      case ALL_GATHER -> others * x.bytes();
      case REDUCE_SCATTER -> others * y.bytes();
      case ALL_REDUCE -> 2 * others * x.bytes() / ranks;
      case ALL_TO_ALL -> others * x.bytes() / ranks;
      case BROADCAST -> ranks == 1 ? 0 : x.bytes();
    };
  }
}
