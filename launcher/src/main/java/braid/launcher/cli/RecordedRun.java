package braid.launcher.cli;

import braid.launcher.ExitCode;
import braid.launcher.cli.experiment.RunFacts;
import braid.launcher.experiment.Experiment;
import braid.launcher.experiment.Manifest.State;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.run.NotebookRunner;
import braid.launcher.notebook.run.RunResult;
import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;

/// A notebook's run with its manifest: written before the ranks start, ended however the run ends,
/// and put into the output notebook too.
///
/// @param saved the output notebook
/// @param err where it is said that a manifest could not be written; the run goes on without
record RecordedRun(
    Notebook notebook, Path saved, NotebookRunner runner, Experiment experiment, PrintWriter err) {
  /// The section of the notebook's metadata.
  private static final String METADATA = "braid";

  RunResult on(SessionOptions options) throws IOException {
    begin();
    var stopped = new AtomicBoolean();
    try {
      return SignalledSession.run(
          options,
          reason -> {
            stopped.set(true);
            runner.stop(reason);
          },
          session -> run(session, stopped));
    } catch (IOException | RuntimeException | Error e) {
      end(State.FAILED, Optional.empty(), String.valueOf(e.getMessage()));
      throw e;
    }
  }

  private void begin() {
    try {
      experiment.begin(Optional.of(RunFacts.source(notebook)));
      notebook.metadata().add(METADATA, experiment.inNotebook());
    } catch (IOException e) {
      err.println("braid: note: this run has no manifest: " + e);
    }
  }

  private RunResult run(Session session, AtomicBoolean stopped) throws IOException {
    session.recordIn(experiment);
    var result = runner.run(session);
    boolean bySignal = stopped.get();
    end(
        bySignal
            ? State.INTERRUPTED
            : result.exitCode() == ExitCode.OK ? State.COMPLETED : State.FAILED,
        bySignal ? Optional.empty() : Optional.of(result.exitCode().code()),
        RunSummary.line(result, session.size()));
    if (experiment.hasBegun()) {
      notebook.write(saved);
    }
    return result;
  }

  private void end(State state, Optional<Integer> exitCode, String result) {
    if (!experiment.hasBegun()) {
      return;
    }
    try {
      experiment.ended(state, exitCode, result);
      notebook.metadata().add(METADATA, experiment.inNotebook());
    } catch (IOException e) {
      err.println("braid: the manifest of this run could not be completed: " + e);
    }
  }
}
