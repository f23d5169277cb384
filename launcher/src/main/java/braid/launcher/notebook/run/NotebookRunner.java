package braid.launcher.notebook.run;

import braid.launcher.ExitCode;
import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.launcher.cell.Outcome;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.NotebookCell;
import braid.launcher.session.Session;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// Runs a notebook's cells in order on a session, without Jupyter, and saves the output notebook
/// before the first cell, after every cell and on every failure. After a cell that fails the rest
/// is left pending.
public final class NotebookRunner {
  /// A cell and what it is called; a cell that is not to be run has no number.
  private record Step(NotebookCell cell, int number) {
    String name() {
      return number == 0 ? "skipped cell" : "cell " + number;
    }
  }

  private final Notebook notebook;
  private final Path output;
  private final TimeLimits limits;
  private final RunProgress progress;
  private final RecordedOutputs recorded = new RecordedOutputs();
  private final StopRequest stop = new StopRequest();

  public NotebookRunner(Notebook notebook, Path output, TimeLimits limits, RunProgress progress) {
    this.notebook = notebook;
    this.output = output;
    this.limits = limits;
    this.progress = progress;
  }

  /// Runs every cell, once. It returns however the cells end.
  ///
  /// @throws IOException where the output notebook cannot be saved
  public RunResult run(Session session) throws IOException {
    var start = Instant.now();
    var steps = plan();
    RunRecord.notebookStarted(notebook, output, start);
    notebook.write(output);
    progress.started((int) steps.stream().filter(step -> step.number > 0).count(), session.size());

    var runs = new ArrayList<CellResult>();
    var exitCode = ExitCode.OK;
    for (var step : steps) {
      if (step.number == 0) {
        runs.add(notRun(step, CellResult.Status.SKIPPED));
      } else if (exitCode != ExitCode.OK) {
        runs.add(notRun(step, CellResult.Status.PENDING));
      } else {
        var run = runCell(step, session);
        runs.add(run);
        exitCode = exitCode(run);
        RunRecord.notebookEnded(notebook, start, Instant.now(), exitCode != ExitCode.OK);
        notebook.write(output);
        progress.cellFinished(run);
      }
    }
    var end = Instant.now();
    RunRecord.notebookEnded(notebook, start, end, exitCode != ExitCode.OK);
    notebook.write(output);
    return new RunResult(notebook.name(), output, runs, exitCode, Duration.between(start, end));
  }

  /// Numbers the cells that are to be run, and clears what an earlier run left in them.
  private List<Step> plan() {
    var steps = new ArrayList<Step>();
    int number = 0;
    for (var cell : notebook.cells()) {
      if (!cell.isCode() || cell.source().isBlank()) {
        continue;
      }
      if (cell.hasTag(NotebookCell.SKIP_EXECUTION)) {
        RunRecord.cellWaits(cell, CellResult.Status.SKIPPED);
        steps.add(new Step(cell, 0));
      } else {
        cell.clearOutputs();
        RunRecord.cellWaits(cell, CellResult.Status.PENDING);
        steps.add(new Step(cell, ++number));
      }
    }
    return steps;
  }

  private static CellResult notRun(Step step, CellResult.Status status) {
    return new CellResult(
        step.name(), step.cell.firstLine(), status, Duration.ZERO, Optional.empty(), "");
  }

  private CellResult runCell(Step step, Session session) {
    progress.cellStarted(step.name(), step.cell.firstLine());
    var start = Instant.now();
    RunRecord.cellStarted(step.cell, start);
    var shown = recorded.of(step.cell);
    step.cell.executionCount(step.number);
    var attempt = new CellAttempt(session, new Cell(step.name(), step.cell.source()), shown);
    var outcome = attempt.run(limits, stop);
    shown.end();
    outcome.result().ifPresent(result -> shown.result(result, step.number));
    outcome.failure().ifPresent(shown::failure);
    var run =
        new CellResult(
            step.name(),
            step.cell.firstLine(),
            status(step, outcome),
            outcome.elapsed(),
            outcome.failure(),
            shown.printed());
    RunRecord.cellEnded(step.cell, run, start, Instant.now());
    return run;
  }

  /// A limit or a request to stop ends the run whatever the cell's tags say.
  private static CellResult.Status status(Step step, Outcome outcome) {
    boolean failed =
        outcome.failure().isPresent()
            && (!step.cell.hasTag(NotebookCell.RAISES_EXCEPTION)
                || outcome.failure().get().kind() == CellFailure.Kind.INTERRUPTED);
    return failed ? CellResult.Status.FAILED : CellResult.Status.COMPLETED;
  }

  private static ExitCode exitCode(CellResult run) {
    if (run.status() != CellResult.Status.FAILED || run.failure().isEmpty()) {
      return ExitCode.OK;
    }
    return CellAttempt.exitCode(run.failure().get());
  }

  /// Ends the run, from another thread: the running cell is interrupted, recorded as such and
  /// saved. It does not wait for that.
  public void stop(String reason) {
    stop.request(reason);
  }
}
