package braid.internal.cuda;

import braid.model.BraidException;
import braid.natives.cuda.Gpu;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/// Waits until a GPU is idle whose streams may wait for signals that cannot arrive any more.
public final class GpuIdle {
  /// Time limit for queued work once no stream waits for a signal.
  private static final long MOST_SECONDS = 5;

  private static final long SLEEP_NANOS = 200_000;

  private GpuIdle() {}

  /// Ends waits repeatedly until all work is done.
  public static void await(Gpu gpu, BooleanSupplier done, Runnable endWaits) {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(MOST_SECONDS);
    while (!done.getAsBoolean()) {
      endWaits.run();
      if (System.nanoTime() - end > 0) {
        throw new BraidException(
            "%s did not come to rest in %d s after its waits were ended; restart the ranks"
                .formatted(gpu.where(), MOST_SECONDS));
      }
      LockSupport.parkNanos(SLEEP_NANOS);
    }
  }
}
