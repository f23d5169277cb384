package braid.launcher.notebook.run;

import braid.launcher.cell.CellFailure;
import java.time.Duration;
import java.util.Locale;
import java.util.Optional;

/// Result of one code cell. `name` is "cell 3", the same 3 as in `In [3]`; `printed` is its output
/// on stdout and stderr.
public record CellResult(
    String name,
    String firstLine,
    Status status,
    Duration elapsed,
    Optional<CellFailure> failure,
    String printed) {

  public enum Status {
    COMPLETED,
    FAILED,
    /// Tagged `skip-execution`.
    SKIPPED,
    /// Not run, because an earlier cell failed.
    PENDING;

    /// Name in the metadata of the output notebook.
    String word() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /// Returns true if it failed as its tags allow.
  public boolean failedAsExpected() {
    return status == Status.COMPLETED && failure.isPresent();
  }
}
