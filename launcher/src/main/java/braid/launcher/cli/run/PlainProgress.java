package braid.launcher.cli.run;

import braid.launcher.notebook.run.CellResult;
import braid.launcher.notebook.run.RunProgress;
import java.io.PrintWriter;

/// Progress for a log: one line where a cell starts and one where it ends.
final class PlainProgress implements RunProgress {
  private final PrintWriter log;
  private int cells;

  PlainProgress(PrintWriter log) {
    this.log = log;
  }

  @Override
  public void started(int cells, int ranks) {
    this.cells = cells;
    say(
        "running %s on %s"
            .formatted(RunSummary.counted(cells, "cell"), RunSummary.counted(ranks, "rank")));
  }

  @Override
  public void cellStarted(String name, String firstLine) {
    say("%s of %d: %s".formatted(name, cells, firstLine));
  }

  @Override
  public void cellFinished(CellResult cell) {
    say(
        "%s of %d: %s in %s%s"
            .formatted(
                cell.name(),
                cells,
                cell.failure().isPresent() ? "failed" : "done",
                RunSummary.time(cell.elapsed()),
                cell.failedAsExpected() ? ", as its tag allows" : ""));
    if (cell.status() == CellResult.Status.FAILED) {
      RunSummary.failure(cell).forEach(this::say);
    }
  }

  private void say(String line) {
    log.println(line);
    log.flush();
  }

  @Override
  public void close() {
    log.flush();
  }
}
