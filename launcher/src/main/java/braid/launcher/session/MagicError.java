package braid.launcher.session;

import braid.launcher.cell.CellFailure;
import braid.launcher.cell.CellFailure.Cause;
import braid.launcher.cell.MagicName;
import braid.launcher.compile.CellCompiler;
import java.util.List;

/// A misused magic; the message explains its use.
final class MagicError extends Exception {
  private static final long serialVersionUID = 1;

  MagicError(String message) {
    super(message);
  }

  /// Returns the error of a magic that does not exist, with what to write instead.
  static MagicError unknown(String name, String line) {
    return new MagicError(
        CellCompiler.remedy(line)
            .map(remedy -> name + " is not a magic: " + remedy)
            .orElseGet(() -> MagicName.unknown(name)));
  }

  CellFailure failure() {
    var message = String.valueOf(getMessage());
    return new CellFailure(Cause.MAGIC, "MagicError", message, List.of(message));
  }
}
