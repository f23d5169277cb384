package braid.launcher.cli.run;

import braid.launcher.ExitCode;
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
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/// A notebook's run with its manifest, which is written before the ranks start, completed however
/// the run ends, and copied into the output notebook.
final class RecordedRun {
  /// Section of the notebook's metadata.
  private static final String METADATA = "braid";

  private final Notebook notebook;
  private final Path output;
  private final NotebookRunner runner;
  private final Experiment experiment;
  private final PrintWriter err;
  private final AtomicBoolean stopped = new AtomicBoolean();
  private final AtomicReference<@Nullable Session> running = new AtomicReference<>();

  /// @param err receives a note if the manifest cannot be written; the run continues
  RecordedRun(
      Notebook notebook,
      Path output,
      NotebookRunner runner,
      Experiment experiment,
      PrintWriter err) {
    this.notebook = notebook;
    this.output = output;
    this.runner = runner;
    this.experiment = experiment;
    this.err = err;
  }

  RunResult on(SessionOptions options) {
    begin();
    try (var session = SignalledSession.start(options)) {
      running.set(session);
      return run(session);
    } catch (SignalledSession.StartInterrupted e) {
      end(State.INTERRUPTED, Optional.empty(), String.valueOf(e.getMessage()));
      throw e;
    } catch (RuntimeException | Error e) {
      end(State.FAILED, Optional.empty(), String.valueOf(e.getMessage()));
      throw e;
    }
  }

  /// Ends the run because of a signal, from another thread, without waiting.
  void stop(String reason) {
    stopped.set(true);
    runner.stop(reason);
  }

  /// Ends the ranks, and so the running cell.
  void endRanks() {
    SignalledSession.close(running.get());
  }

  private void begin() {
    try {
      experiment.begin(Optional.of(RunFacts.source(notebook)));
      notebook.metadata().add(METADATA, experiment.inNotebook());
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

  /// Saves the notebook again with the end of the run in its metadata.
  private void saveWithManifest() {
    try {
      notebook.write(output);
    } catch (IOException e) {
      err.println(
          "braid: note: %s could not be saved again (%s); its metadata do not say how the run ended, %s does"
              .formatted(output, e.getClass().getSimpleName(), experiment.directory()));
    }
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
