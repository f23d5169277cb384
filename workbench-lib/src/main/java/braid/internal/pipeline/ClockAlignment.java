package braid.internal.pipeline;

import java.util.function.LongFunction;

/// Offset of this rank's clock from the group's clock, which is rank 0's: subtract it from a time
/// of this rank. Ranks on one machine read the same clock; its identity shows that, and the
/// measurement must confirm it. Otherwise the measurement alone counts, and its uncertainty is the
/// error.
///
/// The measurement: every rank records the time, meets the others, and records the time again. No
/// rank leaves a meeting before the last one has arrived. So rank 0's time before it is earlier
/// than this rank's time after it, and vice versa. Each meeting bounds the offset from both sides;
/// the narrowest bounds of several meetings count.
public record ClockAlignment(long offsetNanos, long errorNanos) {
  private static final int MEETINGS = 8;
  private static final long UNKNOWN = -1;

  /// Measures the alignment. All members call it together.
  ///
  /// @param gather exchanges one number per member; returns them by rank, on every member
  public static ClockAlignment measure(int rank, LongFunction<long[]> gather) {
    long clock = HostClock.identity().orElse(UNKNOWN);
    boolean shared = gather.apply(clock)[0] == clock && clock != UNKNOWN;
    long least = Long.MIN_VALUE;
    long most = Long.MAX_VALUE;
    for (int i = 0; i < MEETINGS; i++) {
      long mineBefore = System.nanoTime();
      long before = gather.apply(mineBefore)[0];
      long mineAfter = System.nanoTime();
      long after = gather.apply(mineAfter)[0];
      least = Math.max(least, mineBefore - after);
      most = Math.min(most, mineAfter - before);
    }
    return rank == 0 ? new ClockAlignment(0, 0) : of(shared, least, most);
  }

  /// Returns the alignment for an offset between two bounds.
  static ClockAlignment of(boolean shared, long least, long most) {
    boolean maybeSame = least <= 0 && most >= 0;
    if (maybeSame && shared) {
      return new ClockAlignment(0, 0);
    }
    // If the clock may be the same, 0 is the best estimate.
    if (maybeSame) {
      return new ClockAlignment(0, Math.max(-least, most));
    }
    long middle = least + (most - least) / 2;
    return new ClockAlignment(middle, most - middle);
  }
}
