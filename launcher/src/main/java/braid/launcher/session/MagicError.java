package braid.launcher.session;

import braid.launcher.cell.CellFailure;
import braid.launcher.cell.CellFailure.Kind;
import java.util.List;

/// A magic used wrongly; the message says how to use it.
final class MagicError extends Exception {
  private static final long serialVersionUID = 1;

  MagicError(String message) {
    super(message);
  }

  CellFailure failure() {
    var message = String.valueOf(getMessage());
    return new CellFailure(Kind.MAGIC, "MagicError", message, List.of(message));
  }
}
