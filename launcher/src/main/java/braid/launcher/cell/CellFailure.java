package braid.launcher.cell;

import java.util.List;

/// Failure of a cell. `name` is the class of the exception that caused it (or `CompileError`,
/// `RankDied`, `Interrupted`, `MagicError`) and `message` is one line. `traceback` is the full text
/// for users: root cause first, without colours.
public record CellFailure(Cause cause, String name, String message, List<String> traceback) {
  public enum Cause {
    COMPILE,
    EXCEPTION,
    VERIFICATION,
    RANK_DIED,
    INTERRUPTED,
    MAGIC
  }

  public CellFailure {
    traceback = List.copyOf(traceback);
  }
}
