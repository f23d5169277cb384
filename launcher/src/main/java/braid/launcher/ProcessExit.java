package braid.launcher;

import braid.natives.LibC;
import java.util.concurrent.atomic.AtomicBoolean;

/// The exit code of this process. `%%front` cells run in it, and so do libraries that they call:
/// any of them can end it with code 0 before the last cell has run, also by `Runtime.halt`, which
/// no hook sees. A held process ends with [ExitCode#CELL_FAILED] unless [#code] says otherwise
/// first.
public final class ProcessExit {
  private static final String EARLY =
      "braid: the process was ended before its last cell (System.exit or Runtime.halt, by a cell or"
          + " a library that it called)";

  private static final AtomicBoolean HELD = new AtomicBoolean();

  private ProcessExit() {}

  /// Takes the exit code out of the hands of everything that runs in this process.
  public static void hold() {
    LibC.endWith(ExitCode.CELL_FAILED.code(), EARLY);
    HELD.set(true);
  }

  /// Decides the code of a held process. The first decision stands: after a signal, what the ended
  /// command returns no longer counts.
  public static void code(int code) {
    if (HELD.compareAndSet(true, false)) {
      LibC.endWith(code, "");
    }
  }
}
