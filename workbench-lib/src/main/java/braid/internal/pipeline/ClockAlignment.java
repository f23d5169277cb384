package braid.internal.pipeline;

import java.util.function.LongFunction;

/// How this rank's clock stands to the group's, which is rank 0's: subtract the offset from a time
/// of this rank. Ranks of one machine read one clock, which its identity tells and a measurement
/// has to bear out; else the measurement alone counts, and how far it could not tell is the error.
///
/// The measurement: everybody notes the time, meets, and notes the time again. Nobody leaves a
/// meeting before the last has come, so what rank 0 noted before it is earlier than what this rank
/// noted after it, and the other way round. Each meeting bounds the offset from both sides; the
/// narrowest bounds of several count.
public record ClockAlignment(long offsetNanos, long errorNanos) {
  private static final int MEETINGS = 8;
  private static final long UNKNOWN = -1;

  /// All members call it together.
  ///
  /// @param gather every member's number, by rank, on every member
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

  /// The alignment where the offset is known to lie between the two.
  static ClockAlignment of(boolean shared, long least, long most) {
    boolean maybeSame = least <= 0 && most >= 0;
    if (maybeSame && shared) {
      return new ClockAlignment(0, 0);
    }
    // A clock that may be the same is the same: there is no better guess.
    if (maybeSame) {
      return new ClockAlignment(0, Math.max(-least, most));
    }
    long middle = least + (most - least) / 2;
    return new ClockAlignment(middle, most - middle);
  }
}
