package braid.launcher.cli.calibrate;

import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.launcher.cell.CellOutput;
import braid.launcher.cli.run.NotebookQueue;
import braid.launcher.cli.run.SignalledSession;
import braid.launcher.notebook.run.CellAttempt;
import braid.launcher.notebook.run.RunProgress;
import braid.launcher.notebook.run.StopRequest;
import braid.launcher.notebook.run.TimeLimits;
import braid.launcher.session.SessionOptions;
import braid.model.MimeBundle;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.Optional;

/// A cell that measures on all ranks of a session of its own. Its progress is shown, and what it
/// prints is kept.
public final class MeasuringCell implements CellOutput {
  private final PrintWriter err;
  private final RunProgress progress;
  private final StringBuilder printed = new StringBuilder();

  private MeasuringCell(PrintWriter err, RunProgress progress) {
    this.err = err;
    this.progress = progress;
  }

  /// Result of a cell.
  ///
  /// @param code exit code of the command
  /// @param printed standard output of the ranks
  public record Measured(int code, String printed) {}

  /// Runs the cell.
  ///
  /// @param task shown beside the progress, such as `calibrating`
  /// @param err receives progress and failures
  public static Measured run(SessionOptions options, String task, String source, PrintWriter err)
      throws IOException {
    var stop = new StopRequest();
    MeasuringCell output;
    Optional<CellFailure> failure;
    try (var progress = NotebookQueue.progress(err)) {
      output = new MeasuringCell(err, progress);
      var cell = output;
      failure =
          SignalledSession.run(
              options,
              stop::request,
              session -> {
                progress.started(1, options.ranks());
                progress.cellStarted("cell 1", task);
                return new CellAttempt(session, new Cell(task, source), cell)
                    .run(TimeLimits.none(), stop)
                    .failure();
              });
    }
    failure.ifPresent(each -> each.traceback().forEach(err::println));
    err.flush();
    return new Measured(
        failure.map(each -> CellAttempt.exitCode(each).code()).orElse(0),
        output.printed.toString());
  }

  @Override
  public void stdout(String text) {
    printed.append(text);
  }

  @Override
  public void stderr(String text) {
    err.print(text);
    err.flush();
  }

  @Override
  public void display(MimeBundle bundle, String displayId) {
    update(bundle, displayId);
  }

  @Override
  public void update(MimeBundle bundle, String displayId) {
    if (bundle.data().containsKey(MimeBundle.PROGRESS)) {
      progress.cellProgressed(bundle.text().strip());
    }
  }
}
