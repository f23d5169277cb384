package braid.launcher.cell;

import java.util.List;

/// Why a cell failed, root cause first. `name` is the class of the exception (or `CompileError`,
/// `RankDied`, `Interrupted`, `MagicError`); `message` one line; `traceback` what a person reads,
/// without colours.
public record CellFailure(Kind kind, String name, String message, List<String> traceback) {
  public enum Kind {
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
