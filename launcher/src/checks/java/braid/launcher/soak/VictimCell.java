package braid.launcher.soak;

import java.time.Duration;
import java.util.concurrent.TimeUnit;

/// A running cell and its output so far. Of a flood only the first and the last part are kept.
final class VictimCell {
  private static final int MOST_CHARS = 100_000;

  private final StringBuilder output = new StringBuilder();
  private boolean ended;
  private boolean succeeded;

  synchronized void append(String text) {
    output.append(text);
    if (output.length() > 2 * MOST_CHARS) {
      output.delete(MOST_CHARS, output.length() - MOST_CHARS / 2);
    }
    notifyAll();
  }

  synchronized void end(boolean well, String text) {
    append(text);
    ended = true;
    succeeded = well;
    notifyAll();
  }

  /// Waits until the output contains the text. Returns true if it does.
  synchronized boolean awaitOutput(String text, Duration limit) throws InterruptedException {
    long end = System.nanoTime() + limit.toNanos();
    while (output.indexOf(text) < 0) {
      long left = end - System.nanoTime();
      if (ended || left <= 0) {
        return false;
      }
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
    return true;
  }

  /// Waits for the end. Returns true if the cell has ended.
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

  synchronized String output() {
    return output.toString();
  }
}
