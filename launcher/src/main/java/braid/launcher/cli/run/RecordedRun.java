package braid.launcher.cli.run;

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
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/// A notebook's run with its manifest: written before the ranks start, ended however the run ends,
/// and put into the output notebook too.
final class RecordedRun {
  /// The section of the notebook's metadata.
  private static final String METADATA = "braid";

  private final RunInput input;
  private final NotebookRunner runner;
  private final Experiment experiment;
  private final PrintWriter err;
  private final AtomicBoolean stopped = new AtomicBoolean();
  private final AtomicReference<@Nullable Session> running = new AtomicReference<>();

  /// @param err where it is said that a manifest could not be written; the run goes on without
  RecordedRun(RunInput input, NotebookRunner runner, Experiment experiment, PrintWriter err) {
    this.input = input;
    this.runner = runner;
    this.experiment = experiment;
    this.err = err;
  }

  RunResult on(SessionOptions options) {
    begin();
    try (var session = Session.start(options)) {
      running.set(session);
      return run(session);
    } catch (RuntimeException | Error e) {
      end(State.FAILED, Optional.empty(), String.valueOf(e.getMessage()));
      throw e;
    }
  }

  /// Ends it because of a signal, from another thread; does not wait for that.
  void stop(String reason) {
    stopped.set(true);
    runner.stop(reason);
  }

  /// Ends the ranks, and with them the cell that runs.
  void endRanks() {
    SignalledSession.close(running.get());
  }

  private Notebook notebook() {
    return input.notebook();
  }

  private void begin() {
    try {
      experiment.begin(Optional.of(RunFacts.source(notebook())));
      notebook().metadata().add(METADATA, experiment.inNotebook());
    } catch (IOException e) {
      err.println("braid: note: this run has no manifest: " + e);
    }
  }

  private RunResult run(Session session) {
    session.recordIn(experiment);
    var result = runner.run(session);
    boolean bySignal = stopped.get();
    end(
        bySignal
            ? State.INTERRUPTED
            : result.exitCode() == ExitCode.OK ? State.COMPLETED : State.FAILED,
        bySignal ? Optional.empty() : Optional.of(result.exitCode().code()),
        RunSummary.line(result, session.size()));
    if (experiment.hasBegun() && result.trouble().isEmpty()) {
      saveWithManifest();
    }
    return result;
  }

  /// The runner has saved it; what is missing is how the run ended.
  private void saveWithManifest() {
    try {
      notebook().write(input.output());
    } catch (IOException e) {
      err.println(
          "braid: note: %s could not be saved again (%s); its metadata do not say how the run ended, %s does"
              .formatted(input.output(), e.getClass().getSimpleName(), experiment.directory()));
    }
  }

  private void end(State state, Optional<Integer> exitCode, String result) {
    if (!experiment.hasBegun()) {
      return;
    }
    try {
      experiment.ended(state, exitCode, result);
      notebook().metadata().add(METADATA, experiment.inNotebook());
    } catch (IOException e) {
      err.println("braid: the manifest of this run could not be completed: " + e);
    }
  }
}
