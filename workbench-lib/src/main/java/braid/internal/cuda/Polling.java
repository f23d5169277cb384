package braid.internal.cuda;

import braid.internal.rank.Waits;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/// Polls for the end of GPU work. Spins at first, since measured work ends within milliseconds and
/// a sleeping thread wakes late; then sleeps between polls.
public final class Polling {
  private static final long SPIN_NANOS = 20_000_000;
  private static final long SLEEP_NANOS = 50_000;

  private Polling() {}

  public static void until(Waits waits, Supplier<String> description, BooleanSupplier done) {
    long begin = System.nanoTime();
    waits.until(
        description,
        nanos -> {
          long end = System.nanoTime() + nanos;
          do {
            if (done.getAsBoolean()) {
              return Boolean.TRUE;
            }
            if (System.nanoTime() - begin < SPIN_NANOS) {
              Thread.onSpinWait();
            } else {
              TimeUnit.NANOSECONDS.sleep(SLEEP_NANOS);
            }
          } while (System.nanoTime() - end < 0);
          return null;
        });
  }
}
