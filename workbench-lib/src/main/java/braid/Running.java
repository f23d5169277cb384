package braid;

import braid.model.BraidException;

/// An iteration that was started and runs on, while this rank does other work:
///
/// ```java
/// var gathering = Collectives.on(world).start(c -> c.allGather(x, y));
/// up.run();             // uses neither x nor y
/// gathering.await();    // y is complete, and x may be overwritten
/// ```
///
/// All ranks start, and later await, the same things in the same order.
public final class Running {
  private final Iterations iterations;
  private final int epoch;
  private boolean ended;

  Running(Iterations iterations, int epoch) {
    this.iterations = iterations;
    this.epoch = epoch;
  }

  /// Waits until the iteration has ended on this rank, as after `run()`. A second call returns at
  /// once.
  public void await() {
    if (ended) {
      return;
    }
    if (epoch != iterations.epoch()) {
      throw new BraidException(
          "%s was started before a failure ended it; start it again".formatted(this));
    }
    iterations.finish();
    ended = true;
  }

  /// Returns whether the iteration was awaited, or a failure ended it.
  boolean isOver() {
    return ended || epoch != iterations.epoch();
  }

  @Override
  public String toString() {
    return iterations.toString();
  }
}
