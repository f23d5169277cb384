package braid.launcher;

import braid.natives.LibC;

/// Exit code of this process. `%%front` cells and the libraries they call run in it, and any of
/// them can end it with code 0 before the last cell, also by `Runtime.halt`, which runs no hooks.
/// After [#hold], the process ends with [ExitCode#CELL_FAILED] unless [#code] sets another code
/// first.
public final class ProcessExit {
  private static final String EARLY =
      "braid: the process was ended before its last cell (System.exit or Runtime.halt, by a cell or"
          + " a library that it called)";

  /// The thread that ends the process holds it for good.
  private static final Object EXIT = new Object();

  private static boolean held;
  private static boolean decided;

  private ProcessExit() {}

  /// Sets the exit code to [ExitCode#CELL_FAILED], however the process ends.
  public static synchronized void hold() {
    if (!decided) {
      LibC.endWith(ExitCode.CELL_FAILED.code(), EARLY);
      held = true;
    }
  }

  /// Sets the code of a held process. Only the first call counts: after a signal, the result of the
  /// ended command is ignored.
  public static synchronized void code(int code) {
    if (held && !decided) {
      LibC.endWith(code, "");
    }
    decided = true;
  }

  /// Sets the code and ends the process. A second caller waits for its end: if two threads call
  /// `System.exit` at once, its logging can fail, which prints a line to stderr.
  public static void exit(int code) {
    code(code);
    synchronized (EXIT) {
      System.exit(code);
    }
  }
}
