package braid.model;

import java.util.Locale;

/// Algorithms of an all-reduce by Braid's own copies. All of them give the same bits.
public enum AllReduce {
  /// Every rank fetches all of the others' numbers and adds all of them up: one round of signals,
  /// and bytes that grow with the ranks. For small tensors.
  ONE_SHOT,
  /// Every rank adds up its part of the numbers and fetches the other sums from their owners: two
  /// rounds of signals; the default.
  TWO_SHOT;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
