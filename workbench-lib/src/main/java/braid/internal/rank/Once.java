package braid.internal.rank;

import java.util.concurrent.atomic.AtomicBoolean;

/// Runs its body at the first call only, so that closing twice is harmless.
public final class Once implements Runnable {
  private final Runnable body;
  private final AtomicBoolean done = new AtomicBoolean();

  public Once(Runnable body) {
    this.body = body;
  }

  @Override
  public void run() {
    if (done.compareAndSet(false, true)) {
      body.run();
    }
  }
}
