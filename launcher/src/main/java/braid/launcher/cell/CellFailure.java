package braid.launcher.cell;

import java.util.List;

/// Failure of a cell, root cause first. `name` is the class of the exception (or `CompileError`,
/// `RankDied`, `Interrupted`, `MagicError`), `message` is one line, and `traceback` is the text for
/// users, without colours.
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
