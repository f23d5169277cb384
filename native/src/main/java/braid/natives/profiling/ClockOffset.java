package braid.natives.profiling;

import java.util.function.LongSupplier;

/// From CUPTI's clock to that of `System.nanoTime`. Both are read at the beginning and at the end
/// of a profile, and the times between lie on the line between: the two may drift apart.
record ClockOffset(Reading first, Reading last) {
  private static final int TRIES = 64;

  /// One moment on both clocks, and how far apart the two readings may have been.
  record Reading(long other, long nano, long errorNanos) {
    /// The best of several: the one that took the least time.
    static Reading take(LongSupplier other) {
      var best = once(other);
      for (int i = 1; i < TRIES; i++) {
        var next = once(other);
        if (next.errorNanos < best.errorNanos) {
          best = next;
        }
      }
      return best;
    }

    private static Reading once(LongSupplier other) {
      var before = System.nanoTime();
      var there = other.getAsLong();
      var after = System.nanoTime();
      var half = (after - before + 1) / 2;
      return new Reading(there, before + half, half);
    }
  }

  long nano(long other) {
    var span = last.other - first.other;
    var since = other - first.other;
    var rate = span <= 0 ? 0 : (double) driftNanos() / span;
    return first.nano + since + Math.round(since * rate);
  }

  /// How wrong a time may be: as a reading, or because the clocks did not drift evenly.
  long errorNanos() {
    return Math.max(first.errorNanos, last.errorNanos) + Math.abs(driftNanos()) / 2;
  }

  private long driftNanos() {
    return last.nano - first.nano - (last.other - first.other);
  }
}
