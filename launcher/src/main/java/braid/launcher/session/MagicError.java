package braid.launcher.session;

import braid.launcher.cell.CellFailure;
import braid.launcher.cell.CellFailure.Cause;
import java.util.List;

/// A misused magic; the message explains its use.
final class MagicError extends Exception {
  private static final long serialVersionUID = 1;

  MagicError(String message) {
    super(message);
  }

  CellFailure failure() {
    var message = String.valueOf(getMessage());
    return new CellFailure(Cause.MAGIC, "MagicError", message, List.of(message));
  }
}
