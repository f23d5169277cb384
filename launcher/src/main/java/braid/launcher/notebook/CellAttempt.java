package braid.launcher.notebook;

import braid.launcher.session.Cell;
import braid.launcher.session.CellFailure;
import braid.launcher.session.CellOutput;
import braid.launcher.session.Outcome;
import braid.launcher.session.Session;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/// One cell, run to an end that always comes: within its limit, or by an interrupt, or, where the
/// cell does not heed that (a native call), by closing the session, which ends its ranks.
final class CellAttempt {
  /// The name of the failure that a limit makes.
  static final String TIMEOUT = "Timeout";

  /// How long an interrupted cell may take to end.
  private static final long INTERRUPT_GRACE_SECONDS = 10;

  /// How long it may take once its ranks are ended.
  private static final long CLOSE_GRACE_SECONDS = 5;

  private final Session session;
  private final Cell cell;
  private final CellOutput output;

  CellAttempt(Session session, Cell cell, CellOutput output) {
    this.session = session;
    this.cell = cell;
    this.output = output;
  }

  Outcome run(TimeLimits limits, StopRequest stop) {
    long startNanos = System.nanoTime();
    var limit = limits.nearest();
    var running = new CompletableFuture<Outcome>();
    if (stop.reason().isEmpty() && limit.map(l -> l.left().isPositive()).orElse(true)) {
      Thread.ofPlatform().daemon().name("run " + cell.name()).start(() -> complete(running));
      try {
        var first = CompletableFuture.anyOf(running, stop.whenRequested());
        if (limit.isPresent()) {
          first.get(limit.get().left().toNanos(), TimeUnit.NANOSECONDS);
        } else {
          first.get();
        }
      } catch (TimeoutException e) {
        // what to do about it follows
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        stop.request("the run was interrupted");
      } catch (ExecutionException e) {
        return crashed(running.exceptionNow(), startNanos);
      }
      if (running.isDone() && stop.reason().isEmpty()) {
        return running.join();
      }
    } else {
      running.complete(new Outcome(Optional.empty(), Optional.empty(), Duration.ZERO));
    }
    return stopped(running, limit, stop, startNanos);
  }

  private void complete(CompletableFuture<Outcome> running) {
    try {
      running.complete(session.run(cell, output));
    } catch (Throwable e) {
      running.completeExceptionally(e);
    }
  }

  private Outcome stopped(
      CompletableFuture<Outcome> running,
      Optional<TimeLimits.Nearest> limit,
      StopRequest stop,
      long startNanos) {
    var end = end(running);
    var why =
        stop.reason()
            .map(reason -> cell.name() + " was interrupted: " + reason)
            .or(
                () ->
                    limit.map(
                        l ->
                            "%s must end within %s s but did not".formatted(cell.name(), l.said())))
            .orElseThrow();
    var message = why + "; " + end.said;
    var traceback = new ArrayList<>(List.of(message));
    end.failure.ifPresent(failure -> traceback.addAll(failure.traceback()));
    return failed(
        CellFailure.Kind.INTERRUPTED,
        stop.reason().isPresent() ? "Interrupted" : TIMEOUT,
        message,
        traceback,
        startNanos);
  }

  /// How a cell that had to be stopped ended, and what that says of where it was.
  private record End(String said, Optional<CellFailure> failure) {}

  private End end(CompletableFuture<Outcome> running) {
    if (!running.isDone()) {
      session.interrupt();
    }
    var stopped = await(running, INTERRUPT_GRACE_SECONDS);
    if (stopped.isPresent()) {
      return new End("it was interrupted", stopped.get().failure());
    }
    if (running.isCompletedExceptionally()) {
      return new End("the session failed: " + running.exceptionNow(), Optional.empty());
    }
    session.close();
    return new End(
        "it did not heed the interrupt for "
            + INTERRUPT_GRACE_SECONDS
            + " s, so its ranks were ended",
        await(running, CLOSE_GRACE_SECONDS).flatMap(Outcome::failure));
  }

  private static Optional<Outcome> await(CompletableFuture<Outcome> running, long seconds) {
    try {
      return Optional.of(running.get(seconds, TimeUnit.SECONDS));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return Optional.empty();
    } catch (ExecutionException | TimeoutException e) {
      return Optional.empty();
    }
  }

  /// The session itself broke; nothing of that is kept from the reader.
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
        CellFailure.Kind.EXCEPTION, cause.getClass().getName(), message, traceback, startNanos);
  }

  private static Outcome failed(
      CellFailure.Kind kind, String name, String message, List<String> traceback, long startNanos) {
    return new Outcome(
        Optional.empty(),
        Optional.of(new CellFailure(kind, name, message, traceback)),
        Duration.ofNanos(System.nanoTime() - startNanos));
  }
}
