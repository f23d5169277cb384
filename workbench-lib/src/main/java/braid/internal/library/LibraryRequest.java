package braid.internal.library;

import braid.schedule.Collective;

/// A collective that a library is asked for; all ranks ask for the same.
///
/// @param root of a broadcast; of no meaning else
public record LibraryRequest(Collective collective, TensorPart x, TensorPart y, int root) {
  /// Bytes that come to a rank, or leave it, at least.
  public long linkBytes(int ranks) {
    long others = ranks - 1L;
    return switch (collective) {
      case ALL_GATHER -> others * x.bytes();
      case REDUCE_SCATTER -> others * y.bytes();
      case ALL_REDUCE -> 2 * others * x.bytes() / ranks;
      case ALL_TO_ALL -> others * x.bytes() / ranks;
      case BROADCAST -> ranks == 1 ? 0 : x.bytes();
      case BARRIER -> 0;
    };
  }
}
