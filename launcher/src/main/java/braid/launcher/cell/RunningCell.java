package braid.launcher.cell;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/// One run of a cell, which other threads can end. A client creates it before it announces the
/// cell, so an interrupt is never lost: it ends a cell that has not begun at once, and a running
/// one wherever it is. After the end of the cell it has no effect.
public final class RunningCell {
  private final Cell cell;
  private final CompletableFuture<Outcome> outcome = new CompletableFuture<>();
  private volatile boolean begun;
  private volatile boolean interrupted;
  private volatile boolean killed;
  private volatile long interruptedNanos;
  private volatile long killedNanos;
  private Runnable stop = () -> {};
  private Supplier<List<Integer>> pending = List::of;

  public RunningCell(Cell cell) {
    this.cell = cell;
  }

  public Cell cell() {
    return cell;
  }

  /// Interrupts the cell on every rank. Further interrupts have no effect.
  public synchronized void interrupt() {
    if (interrupted || outcome.isDone()) {
      return;
    }
    interruptedNanos = System.nanoTime();
    interrupted = true;
    if (begun) {
      stop.run();
    } else {
      var message = cell.name() + " was interrupted before it began";
      var failure =
          new CellFailure(CellFailure.Cause.INTERRUPTED, "Interrupted", message, List.of(message));
      outcome.complete(new Outcome(Optional.empty(), Optional.of(failure), Duration.ZERO));
    }
  }

  /// Interrupts the cell and kills the ranks that do not stop within a grace period. If any was
  /// killed, the session starts new ones.
  public synchronized void kill() {
    interrupt();
    if (!killed && !outcome.isDone()) {
      killedNanos = System.nanoTime();
      killed = true;
      stopAgain();
    }
  }

  /// Waits for the end of the cell.
  ///
  /// @throws java.util.concurrent.CompletionException if the session itself failed
  public Outcome await() {
    return outcome.join();
  }

  /// Completes at the end of the cell; fails if the session itself failed.
  public CompletableFuture<Outcome> outcome() {
    return outcome;
  }

  /// Returns the ranks that the cell waits for.
  public synchronized List<Integer> pending() {
    return isRunning() ? pending.get() : List.of();
  }

  public boolean isRunning() {
    return begun && !outcome.isDone();
  }

  public boolean isInterrupted() {
    return interrupted;
  }

  public boolean isKilled() {
    return killed;
  }

  /// Time of the first interrupt (`System.nanoTime`).
  public long interruptedNanos() {
    return interruptedNanos;
  }

  /// Time of the first [#kill] (`System.nanoTime`).
  public long killedNanos() {
    return killedNanos;
  }

  /// Begins the run, unless it has been interrupted. Returns true if it has begun.
  ///
  /// @param stop ends what the cell waits for; runs at an interrupt, only until the end of the cell
  /// @param pending returns the ranks that the cell waits for
  public synchronized boolean begin(Runnable stop, Supplier<List<Integer>> pending) {
    this.stop = stop;
    this.pending = pending;
    begun = !outcome.isDone();
    return begun;
  }

  /// Stops an interrupted cell again: its code may have caught the first stop.
  public synchronized void stopAgain() {
    if (interrupted && isRunning()) {
      stop.run();
    }
  }

  public synchronized void end(Outcome how) {
    outcome.complete(how);
  }

  /// Ends the cell because the session itself failed.
  public synchronized void fail(Throwable cause) {
    outcome.completeExceptionally(cause);
  }
}
