package braid.launcher.notebook.report;

import braid.launcher.ExitCode;
import braid.launcher.cell.CellFailure;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.check.NotebookRun;
import braid.launcher.notebook.run.CellResult;
import braid.launcher.notebook.run.CellResult.Status;
import braid.launcher.notebook.run.RunResult;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Optional;

/// Runs that have ended, for reports.
final class FinishedRun {
  private FinishedRun() {}

  /// Returns a run of all cells, whose last one may have failed.
  static NotebookRun of(Notebook notebook, Optional<CellFailure> failure) {
    int count = notebook.codeCells().size();
    var cells = new ArrayList<CellResult>();
    for (int i = 1; i <= count; i++) {
      boolean fails = i == count && failure.isPresent();
      cells.add(
          new CellResult(
              "cell " + i,
              "line " + i,
              fails ? Status.FAILED : Status.COMPLETED,
              Duration.ofMillis(5),
              fails ? failure : Optional.empty(),
              ""));
    }
    return NotebookRun.unchecked(
        notebook,
        new RunResult(
            notebook.name(),
            Path.of("out.ipynb"),
            cells,
            failure.isPresent() ? ExitCode.CELL_FAILED : ExitCode.OK,
            Duration.ofSeconds(1),
            Optional.empty()));
  }
}
