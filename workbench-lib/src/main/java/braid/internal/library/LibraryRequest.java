package braid.internal.library;

import braid.model.Collective;

/// A collective to be run by a library, the same on all ranks.
///
/// @param root rank that sends a broadcast; unused otherwise
public record LibraryRequest(Collective collective, TensorPart x, TensorPart y, int root) {
  /// Least number of bytes that a rank receives or sends.
  public long linkBytes(int ranks) {
    long others = ranks - 1L;
    return switch (collective) {
      case ALL_GATHER -> others * x.bytes();
      case REDUCE_SCATTER -> others * y.bytes();
      case ALL_REDUCE -> 2 * others * x.bytes() / ranks;
      case ALL_TO_ALL -> others * x.bytes() / ranks;
      case BROADCAST -> ranks == 1 ? 0 : x.bytes();
      case BARRIER -> 0;
      case SEND, RECEIVE -> throw new IllegalStateException("no library call for " + collective);
    };
  }
}
