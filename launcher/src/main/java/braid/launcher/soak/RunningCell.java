package braid.launcher.soak;

import java.time.Duration;
import java.util.concurrent.TimeUnit;

/// A cell on its way, and what it has said so far. Of a flood only the first and the last part are
/// kept.
final class RunningCell {
  private static final int MOST_CHARS = 100_000;

  private final StringBuilder said = new StringBuilder();
  private boolean ended;
  private boolean succeeded;

  synchronized void say(String text) {
    said.append(text);
    if (said.length() > 2 * MOST_CHARS) {
      said.delete(MOST_CHARS, said.length() - MOST_CHARS / 2);
    }
    notifyAll();
  }

  synchronized void end(boolean well, String text) {
    say(text);
    ended = true;
    succeeded = well;
    notifyAll();
  }

  /// Waits until it has said that. Returns whether it has.
  synchronized boolean awaitSaid(String text, Duration limit) throws InterruptedException {
    long end = System.nanoTime() + limit.toNanos();
    while (said.indexOf(text) < 0) {
      long left = end - System.nanoTime();
      if (ended || left <= 0) {
        return false;
      }
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
    return true;
  }

  /// Waits for its end. Returns whether it has ended.
  synchronized boolean awaitEnd(Duration limit) throws InterruptedException {
    long end = System.nanoTime() + limit.toNanos();
    for (long left = limit.toNanos(); !ended && left > 0; left = end - System.nanoTime()) {
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
    return ended;
  }

  synchronized boolean succeeded() {
    return ended && succeeded;
  }

  synchronized String said() {
    return said.toString();
  }
}
