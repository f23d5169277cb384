package braid.schedule;

import java.util.Locale;

/// A standalone collective operation.
public enum Collective {
  ALL_GATHER,
  REDUCE_SCATTER,
  ALL_REDUCE,
  ALL_TO_ALL,
  BROADCAST,
  BARRIER;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
