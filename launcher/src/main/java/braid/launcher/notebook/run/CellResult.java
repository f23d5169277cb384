package braid.launcher.notebook.run;

import braid.launcher.cell.CellFailure;
import java.time.Duration;
import java.util.Locale;
import java.util.Optional;

/// What became of one code cell. `name` is "cell 3", the same 3 as in `In [3]`; `printed` is what
/// it wrote to stdout and stderr.
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

    /// As the metadata of the output notebook has it.
    String word() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /// Whether it failed though its tags allow that.
  public boolean failedAsExpected() {
    return status == Status.COMPLETED && failure.isPresent();
  }
}
