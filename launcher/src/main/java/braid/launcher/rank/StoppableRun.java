package braid.launcher.rank;

import REPL.$Cancel$;
import braid.launcher.wire.RankFailure;
import braid.launcher.wire.RankFailure.Cause;
import braid.model.GroupAborted;
import java.io.InterruptedIOException;
import java.nio.channels.ClosedByInterruptException;
import jdk.jshell.spi.SPIResolutionException;
import org.jspecify.annotations.Nullable;

/// Runs of cells' code, one at a time, which another thread can stop.
public final class StoppableRun {
  private @Nullable Thread running;
  private boolean stopped;

  /// Marks the calling thread as running code of a cell.
  public synchronized void begin() {
    running = Thread.currentThread();
  }

  /// Ends the run. Later stops have no effect, and earlier ones do not reach the next run.
  public synchronized void end() {
    running = null;
    stopped = false;
    $Cancel$.stop(false);
    var _ = Thread.interrupted();
  }

  /// Stops the current run, if any.
  public synchronized void stop() {
    if (running != null) {
      stopped = true;
      $Cancel$.stop(true);
      running.interrupt();
    }
  }

  private synchronized boolean wasStopped() {
    return stopped;
  }

  /// Distinguishes a failure of the run from its stop. Call it before the end of the run, on its
  /// thread.
  public RankFailure failure(Throwable thrown) {
    if (thrown instanceof SPIResolutionException unresolved) {
      return RankFailure.of(Cause.UNRESOLVED, unresolved.id(), thrown);
    }
    boolean byStop = Thread.currentThread().isInterrupted() || endedByStop(thrown);
    return RankFailure.of(byStop && wasStopped() ? Cause.STOPPED : Cause.THROWN, -1, thrown);
  }

  /// Returns true if the stop caused the failure. The cell or a library may have wrapped its
  /// exception.
  private static boolean endedByStop(Throwable thrown) {
    return RankFailure.chain(thrown).stream()
        .anyMatch(
            t ->
                t instanceof CellStopped
                    || t instanceof InterruptedException
                    || t instanceof InterruptedIOException
                    || t instanceof ClosedByInterruptException
                    || t instanceof GroupAborted);
  }
}
