package braid.launcher.notebook.run;

import braid.launcher.ExitCode;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/// Result of a notebook's run: every cell, and the output notebook.
///
/// @param trouble why cells were not run or not saved, if not because of a cell: one line
public record RunResult(
    String notebook,
    Path output,
    List<CellResult> cells,
    ExitCode exitCode,
    Duration elapsed,
    Optional<String> trouble) {
  public RunResult {
    cells = List.copyOf(cells);
  }

  public long count(CellResult.Status status) {
    return cells.stream().filter(cell -> cell.status() == status).count();
  }

  /// Returns the cell that ended the run.
  public Optional<CellResult> failed() {
    return cells.stream().filter(cell -> cell.status() == CellResult.Status.FAILED).findFirst();
  }
}
