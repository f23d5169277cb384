package braid.natives.cublasmp;

import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/// Releases of native handles. They run in reverse order, all of them even if some fail.
final class ReleaseStack implements AutoCloseable {
  private final Deque<Runnable> pending = new ArrayDeque<>();

  void push(Runnable release) {
    pending.push(release);
  }

  /// Releases everything after a failure of the owner's constructor.
  void closeAfter(Throwable failure) {
    try {
      close();
    } catch (RuntimeException e) {
      failure.addSuppressed(e);
    }
  }

  /// Throws the first failure, with later ones suppressed. Further calls have no effect.
  @Override
  public void close() {
    @Nullable RuntimeException first = null;
    while (!pending.isEmpty()) {
      try {
        pending.pop().run();
      } catch (RuntimeException e) {
        if (first == null) {
          first = e;
        } else {
          first.addSuppressed(e);
        }
      }
    }
    if (first != null) {
      throw first;
    }
  }
}
