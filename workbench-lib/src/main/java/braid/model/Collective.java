package braid.model;

import java.util.Locale;

/// A standalone collective operation.
public enum Collective {
  ALL_GATHER,
  REDUCE_SCATTER,
  ALL_REDUCE,
  ALL_TO_ALL,
  BROADCAST,
  /// A message to one rank.
  SEND,
  /// A message from one rank.
  RECEIVE,
  BARRIER;

  /// Returns true if the collective is a sum; libraries do not add every type.
  public boolean adds() {
    return this == REDUCE_SCATTER || this == ALL_REDUCE;
  }

  /// Returns true if only two ranks call it.
  public boolean isMessage() {
    return this == SEND || this == RECEIVE;
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
