package braid.natives.profiling;

import java.util.function.LongSupplier;

/// Converts CUPTI's clock to `System.nanoTime`. Both are read at the beginning and at the end of a
/// profile; times between are interpolated, because the clocks may drift.
record ClockOffset(Reading first, Reading last) {
  private static final int TRIES = 64;

  /// One moment on both clocks, and the uncertainty between the two readings.
  record Reading(long other, long nano, long errorNanos) {
    /// Returns the most precise of several readings: the one that took the least time.
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
      var value = other.getAsLong();
      var after = System.nanoTime();
      var half = (after - before + 1) / 2;
      return new Reading(value, before + half, half);
    }
  }

  long nano(long other) {
    var span = last.other - first.other;
    var since = other - first.other;
    var rate = span <= 0 ? 0 : (double) driftNanos() / span;
    return first.nano + since + Math.round(since * rate);
  }

  /// Upper bound of the error of a time: of a reading, or of uneven drift.
  long errorNanos() {
    return Math.max(first.errorNanos, last.errorNanos) + Math.abs(driftNanos()) / 2;
  }

  private long driftNanos() {
    return last.nano - first.nano - (last.other - first.other);
  }
}
