package braid.launcher.kernel;

import braid.launcher.cell.CellOutput;
import braid.launcher.cell.RunningCell;
import braid.launcher.session.Session;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// The session, started in parallel with the kernel: clients are answered while the ranks start. A
/// failed start is reported to its callers and retried for the next one.
final class LazySession implements AutoCloseable {
  /// Time that the end of the kernel waits for ranks that are still starting; clients kill a kernel
  /// that takes longer.
  private static final Duration PATIENCE = Duration.ofSeconds(4);

  private final Supplier<Session> start;
  private @Nullable CompletableFuture<Session> started;
  private boolean closed;

  LazySession(Supplier<Session> start) {
    this.start = start;
  }

  synchronized CompletableFuture<Session> get() {
    if (closed) {
      return CompletableFuture.failedFuture(new IllegalStateException("the kernel has ended"));
    }
    if (started == null || started.isCompletedExceptionally()) {
      var starting = new CompletableFuture<Session>();
      started = starting;
      Thread.ofPlatform().name("kernel-session-start").daemon().start(() -> start(starting));
    }
    return started;
  }

  /// Begins a cell as soon as the session has started. The cell fails if that fails.
  void begin(RunningCell cell, CellOutput output) {
    var _ =
        get()
            .thenAccept(session -> session.begin(cell, output))
            .whenComplete(
                (_, failure) -> {
                  if (failure != null) {
                    cell.fail(failure);
                  }
                });
  }

  @Override
  public void close() {
    CompletableFuture<Session> session;
    synchronized (this) {
      closed = true;
      session = started;
    }
    if (session != null) {
      session.copy().orTimeout(PATIENCE.toMillis(), TimeUnit.MILLISECONDS).handle(this::end).join();
    }
  }

  /// Closes the session if it has started by then. Later ranks end with this process.
  private @Nullable Void end(@Nullable Session session, @Nullable Throwable failure) {
    if (session != null) {
      session.close();
    }
    return null;
  }

  private void start(CompletableFuture<Session> starting) {
    try {
      starting.complete(start.get());
    } catch (RuntimeException | Error e) {
      starting.completeExceptionally(e);
    }
  }
}
