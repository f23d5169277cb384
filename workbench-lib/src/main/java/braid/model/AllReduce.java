package braid.model;

import java.util.Locale;

/// Algorithms of an all-reduce by Braid's own copies. All of them produce the same bits.
public enum AllReduce {
  /// Every rank fetches all other ranks' tensors and adds them: one round of signals, and bytes
  /// that grow with the number of ranks. For small tensors.
  ONE_SHOT,
  /// Every rank adds one part and fetches the other sums from their owners: two rounds of signals;
  /// the default.
  TWO_SHOT;

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
