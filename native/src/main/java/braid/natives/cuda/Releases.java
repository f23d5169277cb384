package braid.natives.cuda;

import java.util.ArrayDeque;
import java.util.Deque;

/// Releases of a GPU's memory, none of which runs while one of its streams captures. The driver
/// would end the capture with an error if the capturing thread frees memory, and a graph must not
/// refer to memory that is gone before its first launch.
///
/// A release during a capture, by any thread, is kept and runs when the last capture ends. A
/// capture begins only after releases in progress have ended.
final class Releases {
  private final Deque<Runnable> kept = new ArrayDeque<>();
  private int running;
  private int captures;

  /// Runs the release, or keeps it during a capture.
  void run(Runnable release) {
    synchronized (this) {
      if (captures > 0) {
        kept.add(release);
        return;
      }
      running++;
    }
    try {
      release.run();
    } finally {
      ended();
    }
  }

  private synchronized void ended() {
    running--;
    notifyAll();
  }

  /// Begins a capture, after releases in progress. Ignores interrupts meanwhile: releases wait only
  /// for work of the device, which ends when a cell is stopped.
  synchronized void beginCapture() {
    var interrupted = false;
    while (running > 0) {
      try {
        wait();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    captures++;
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /// Ends a capture. After the last one the kept releases run in their order, each of them even if
  /// others fail; the first failure is thrown.
  void endCapture() {
    Deque<Runnable> due;
    synchronized (this) {
      captures--;
      if (captures > 0) {
        return;
      }
      due = new ArrayDeque<>(kept);
      kept.clear();
    }
    RuntimeException failure = null;
    for (var release : due) {
      try {
        run(release);
      } catch (RuntimeException e) {
        if (failure == null) {
          failure = e;
        } else {
          failure.addSuppressed(e);
        }
      }
    }
    if (failure != null) {
      throw failure;
    }
  }
}
