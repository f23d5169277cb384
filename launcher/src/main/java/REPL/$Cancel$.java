package REPL;

import braid.launcher.rank.CellStopped;

/// Loops of cells call this on every round: the JDK's `LocalExecutionControl` weaves the call,
/// under this name, into what it loads. That is how a cell that never waits can be stopped.
@SuppressWarnings({"NullAway", "checkstyle"})
public final class $Cancel$ {
  private static volatile boolean stopping;

  private $Cancel$() {}

  public static void stopCheck() {
    if (stopping) {
      throw new CellStopped();
    }
  }

  public static void stop(boolean now) {
    stopping = now;
  }
}
