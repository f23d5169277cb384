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
/// before the first cell, after every cell and on every failure. After a failed cell the remaining
/// cells stay pending.
public final class NotebookRunner {
  /// A cell and its number; 0 if the cell is skipped.
  private record Step(NotebookCell cell, int number) {
    String name() {
      return number == 0 ? "skipped cell" : "cell " + number;
    }
  }

  private final Notebook notebook;
  private final Path output;
  private final TimeLimits limits;
  private final RunProgress progress;
  private final RecordedOutputs recorded;
  private final StopRequest stop = new StopRequest();
  private Optional<String> problem = Optional.empty();

  public NotebookRunner(Notebook notebook, Path output, TimeLimits limits, RunProgress progress) {
    this.notebook = notebook;
    this.output = output;
    this.limits = limits;
    this.progress = progress;
    this.recorded = new RecordedOutputs(progress);
  }

  /// Runs every cell, once. Returns however the cells end. If the output notebook cannot be saved,
  /// the run ends: later results would be lost.
  public RunResult run(Session session) {
    var start = Instant.now();
    var steps = plan(notebook);
    RunRecord.notebookStarted(notebook, output, start);
    save();
    progress.started((int) steps.stream().filter(step -> step.number > 0).count(), session.size());

    var runs = new ArrayList<CellResult>();
    var exitCode = ExitCode.OK;
    for (var step : steps) {
      if (step.number == 0) {
        runs.add(notRun(step, CellResult.Status.SKIPPED));
      } else if (exitCode != ExitCode.OK || problem.isPresent()) {
        runs.add(notRun(step, CellResult.Status.PENDING));
      } else {
        var run = runCell(step, session);
        runs.add(run);
        exitCode = exitCode(run);
        RunRecord.notebookEnded(notebook, start, Instant.now(), exitCode != ExitCode.OK);
        save();
        progress.cellFinished(run);
      }
    }
    var end = Instant.now();
    RunRecord.notebookEnded(notebook, start, end, exitCode != ExitCode.OK || problem.isPresent());
    if (problem.isEmpty()) {
      save();
    }
    return new RunResult(
        notebook.name(),
        output,
        runs,
        exitCode == ExitCode.OK && problem.isPresent() ? ExitCode.CELL_FAILED : exitCode,
        Duration.between(start, end),
        problem);
  }

  private void save() {
    try {
      notebook.write(output);
    } catch (IOException e) {
      problem =
          Optional.of(
              "%s must be a file to write but could not be saved (%s); check that its directory exists and has free space"
                  .formatted(output, e.getClass().getSimpleName()));
    }
  }

  /// Returns the result of a notebook that was not run; nothing is saved.
  public static RunResult notRun(Notebook notebook, Path output, ExitCode exitCode, String why) {
    var cells =
        plan(notebook).stream()
            .map(
                step ->
                    notRun(
                        step,
                        step.number == 0 ? CellResult.Status.SKIPPED : CellResult.Status.PENDING))
            .toList();
    return new RunResult(notebook.name(), output, cells, exitCode, Duration.ZERO, Optional.of(why));
  }

  /// Numbers the cells to run, and clears outputs of earlier runs.
  private static List<Step> plan(Notebook notebook) {
    notebook.withoutRemark(NotebookCell.RECORDED);
    var steps = new ArrayList<Step>();
    int number = 0;
    for (var cell : notebook.codeCells()) {
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
    var outputs = recorded.of(step.cell);
    step.cell.executionCount(step.number);
    var attempt = new CellAttempt(session, new Cell(step.name(), step.cell.source()), outputs);
    var outcome = attempt.run(limits, stop);
    outputs.end();
    outcome.result().ifPresent(result -> outputs.result(result, step.number));
    outcome.failure().ifPresent(outputs::failure);
    var run =
        new CellResult(
            step.name(),
            step.cell.firstLine(),
            status(step, outcome),
            outcome.elapsed(),
            outcome.failure(),
            outputs.printed());
    RunRecord.cellEnded(step.cell, run, start, Instant.now());
    return run;
  }

  /// Returns the status of a cell. A limit or a stop request ends the run, whatever the cell's tags
  /// are.
  private static CellResult.Status status(Step step, Outcome outcome) {
    boolean failed =
        outcome.failure().isPresent()
            && (!step.cell.hasTag(NotebookCell.RAISES_EXCEPTION)
                || outcome.failure().get().cause() == CellFailure.Cause.INTERRUPTED);
    return failed ? CellResult.Status.FAILED : CellResult.Status.COMPLETED;
  }

  private static ExitCode exitCode(CellResult run) {
    if (run.status() != CellResult.Status.FAILED || run.failure().isEmpty()) {
      return ExitCode.OK;
    }
    return CellAttempt.exitCode(run.failure().get());
  }

  /// Stops the run, from another thread: the running cell is interrupted, recorded and saved. Does
  /// not wait for that.
  public void stop(String reason) {
    stop.request(reason);
  }
}
