package braid.launcher.kernel;

import braid.launcher.session.Session;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// The session, started beside the kernel: clients are answered while the ranks still start. A
/// start that failed is told to whoever asked, and tried again for whoever asks next.
final class LazySession implements AutoCloseable {
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

  /// Stops what the session is running, if it is there.
  void interrupt() {
    CompletableFuture<Session> session;
    synchronized (this) {
      session = started;
    }
    if (session != null && session.isDone() && !session.isCompletedExceptionally()) {
      session.join().interrupt();
    }
  }

  @Override
  public void close() {
    CompletableFuture<Session> session;
    synchronized (this) {
      closed = true;
      session = started;
    }
    if (session != null && session.handle((_, failure) -> failure == null).join()) {
      session.join().close();
    }
  }

  private void start(CompletableFuture<Session> starting) {
    try {
      starting.complete(start.get());
    } catch (RuntimeException | Error e) {
      starting.completeExceptionally(e);
    }
  }
}
