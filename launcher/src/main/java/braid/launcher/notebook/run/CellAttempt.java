package braid.launcher.notebook.run;

import braid.launcher.ExitCode;
import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.launcher.cell.CellOutput;
import braid.launcher.cell.Outcome;
import braid.launcher.cell.RunningCell;
import braid.launcher.session.Session;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/// One run of a cell that always ends: within its limit, by an interrupt, or, if the cell ignores
/// that for [TimeLimits.Nearest#grace] (in a native call), by closing the session, which ends its
/// ranks and saves what they have published.
public final class CellAttempt {
  /// Name of a failure by timeout.
  static final String TIMEOUT = "Timeout";

  /// Time for the cell to end after its ranks are ended: more than their pipes are read, which a
  /// child may keep open.
  private static final Duration CLOSE_GRACE = Duration.ofSeconds(6);

  private final Session session;
  private final Cell cell;
  private final CellOutput output;

  public CellAttempt(Session session, Cell cell, CellOutput output) {
    this.session = session;
    this.cell = cell;
    this.output = output;
  }

  public Outcome run(TimeLimits limits, StopRequest stop) {
    long startNanos = System.nanoTime();
    var limit = limits.nearest();
    if (stop.reason().isPresent() || limit.map(l -> !l.left().isPositive()).orElse(false)) {
      return stopped(new End("it was not started", Optional.empty()), limit, stop, startNanos);
    }
    var running = session.begin(cell, output);
    try {
      var first = CompletableFuture.anyOf(running.outcome(), stop.whenRequested());
      if (limit.isPresent()) {
        first.get(limit.get().left().toNanos(), TimeUnit.NANOSECONDS);
      } else {
        first.get();
      }
    } catch (TimeoutException e) {
      return stopped(end(running, limit.orElseThrow().grace()), limit, stop, startNanos);
    } catch (InterruptedException e) {
      stop.request("the run's thread was interrupted");
      var outcome = stopped(end(running, TimeLimits.LONGEST_GRACE), limit, stop, startNanos);
      Thread.currentThread().interrupt();
      return outcome;
    } catch (ExecutionException e) {
      return crashed(running.outcome().exceptionNow(), startNanos);
    }
    return stop.reason().isEmpty()
        ? running.await()
        : stopped(end(running, TimeLimits.LONGEST_GRACE), limit, stop, startNanos);
  }

  /// Returns the exit code of a command that ends with this failure.
  public static ExitCode exitCode(CellFailure failure) {
    return switch (failure.cause()) {
      case VERIFICATION -> ExitCode.VERIFICATION_FAILED;
      case RANK_DIED -> ExitCode.RANK_DIED;
      case INTERRUPTED -> failure.name().equals(TIMEOUT) ? ExitCode.TIMEOUT : ExitCode.CELL_FAILED;
      case COMPILE, EXCEPTION, MAGIC -> ExitCode.CELL_FAILED;
    };
  }

  private Outcome stopped(
      End end, Optional<TimeLimits.Nearest> limit, StopRequest stop, long startNanos) {
    var why =
        stop.reason()
            .map(reason -> cell.name() + ": " + reason)
            .or(
                () ->
                    limit.map(
                        l ->
                            "%s must end within %s s but did not"
                                .formatted(cell.name(), l.option())))
            .orElseThrow();
    var message = why + "; " + end.description;
    var traceback = new ArrayList<>(List.of(message));
    end.failure.ifPresent(failure -> traceback.addAll(failure.traceback()));
    return failed(
        CellFailure.Cause.INTERRUPTED,
        stop.reason().isPresent() ? "Interrupted" : TIMEOUT,
        message,
        traceback,
        startNanos);
  }

  /// End of a stopped cell, and its failure, which shows where it was.
  private record End(String description, Optional<CellFailure> failure) {}

  /// @param grace time to stop before the session is closed
  private End end(RunningCell running, Duration grace) {
    running.interrupt();
    var outcome = running.outcome();
    boolean inTime = ended(outcome, grace);
    if (outcome.isCompletedExceptionally()) {
      return new End("the session failed: " + outcome.exceptionNow(), Optional.empty());
    }
    if (inTime) {
      return new End("it was interrupted", outcome.join().failure());
    }
    session.close();
    return new End(
        "it ignored an interrupt for %s s, so its ranks were ended"
            .formatted(TimeLimits.seconds(grace)),
        ended(outcome, CLOSE_GRACE) && !outcome.isCompletedExceptionally()
            ? outcome.join().failure()
            : Optional.empty());
  }

  private static boolean ended(CompletableFuture<Outcome> outcome, Duration limit) {
    try {
      outcome.get(limit.toNanos(), TimeUnit.NANOSECONDS);
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return outcome.isDone();
    } catch (ExecutionException e) {
      return true;
    } catch (TimeoutException e) {
      return false;
    }
  }

  /// Returns the failure of a broken session, with its whole stack.
  private static Outcome crashed(Throwable cause, long startNanos) {
    var traceback = new ArrayList<String>();
    for (Throwable t = cause; t != null; t = t.getCause()) {
      traceback.add((traceback.isEmpty() ? "" : "caused by ") + t);
    }
    for (var frame : cause.getStackTrace()) {
      traceback.add("    at " + frame);
    }
    var message = String.valueOf(cause.getMessage()).lines().findFirst().orElse("");
    return failed(
        CellFailure.Cause.EXCEPTION, cause.getClass().getName(), message, traceback, startNanos);
  }

  private static Outcome failed(
      CellFailure.Cause cause,
      String name,
      String message,
      List<String> traceback,
      long startNanos) {
    return new Outcome(
        Optional.empty(),
        Optional.of(new CellFailure(cause, name, message, traceback)),
        Duration.ofNanos(System.nanoTime() - startNanos));
  }
}
