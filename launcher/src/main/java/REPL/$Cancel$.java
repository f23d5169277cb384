package REPL;

import braid.launcher.rank.CellStopped;

/// Stop check of cells. The JDK's `LocalExecutionControl` weaves a call of this name into every
/// loop it loads, so that a cell that never waits can be stopped.
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
