package braid.launcher.rank;

import REPL.$Cancel$;
import braid.launcher.wire.RankFailure;
import braid.launcher.wire.RankFailure.Kind;
import braid.model.GroupAborted;
import java.io.InterruptedIOException;
import java.nio.channels.ClosedByInterruptException;
import jdk.jshell.spi.SPIResolutionException;
import org.jspecify.annotations.Nullable;

/// Runs of cells' code, one at a time, each of which another thread can stop.
public final class StoppableRun {
  private @Nullable Thread running;
  private boolean stopped;

  /// From here on the calling thread runs code of a cell.
  public synchronized void begin() {
    running = Thread.currentThread();
  }

  /// A stop from here on reaches nothing; one that came before does not reach the next run.
  public synchronized void end() {
    running = null;
    stopped = false;
    $Cancel$.stop(false);
    var _ = Thread.interrupted();
  }

  /// Stops the run, if there is one.
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

  /// Tells a failure of the run from its stop. Call it before the end of the run, on its thread.
  public RankFailure failure(Throwable thrown) {
    if (thrown instanceof SPIResolutionException unresolved) {
      return RankFailure.of(Kind.UNRESOLVED, unresolved.id(), thrown);
    }
    boolean byStop = Thread.currentThread().isInterrupted() || endedByStop(thrown);
    return RankFailure.of(byStop && wasStopped() ? Kind.STOPPED : Kind.THROWN, -1, thrown);
  }

  /// The cell, or a library it uses, may have wrapped the exception of the stop.
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
