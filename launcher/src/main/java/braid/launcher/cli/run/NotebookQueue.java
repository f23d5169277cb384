package braid.launcher.cli.run;

import braid.launcher.ExitCode;
import braid.launcher.cli.home.Env;
import braid.launcher.experiment.Experiment;
import braid.launcher.notebook.check.NotebookRun;
import braid.launcher.notebook.check.Recording;
import braid.launcher.notebook.run.NotebookRunner;
import braid.launcher.notebook.run.RunProgress;
import braid.launcher.notebook.run.RunResult;
import braid.launcher.notebook.run.TimeLimits;
import braid.launcher.session.SessionOptions;
import braid.model.BraidException;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Runs notebooks in order, each on ranks of its own. A failed notebook does not stop the next one,
/// unless `--fail-fast` is set.
public final class NotebookQueue {
  /// Runs after the last notebook, before a signal may end the JVM.
  public interface Ending<T> {
    /// Called before each notebook with the results to report if the process ends in it.
    default void unfinished(List<NotebookRun> runs) {}

    T of(List<NotebookRun> runs, List<Experiment> kept, SessionOptions options) throws IOException;

    /// Returns this action, which also adds the folders of the runs to a list.
    default Ending<T> noting(List<Path> folders) {
      var action = this;
      return new Ending<>() {
        @Override
        public void unfinished(List<NotebookRun> runs) {
          action.unfinished(runs);
        }

        @Override
        public T of(List<NotebookRun> runs, List<Experiment> kept, SessionOptions options)
            throws IOException {
          kept.stream()
              .filter(Experiment::hasBegun)
              .map(Experiment::directory)
              .forEach(folders::add);
          return action.of(runs, kept, options);
        }
      };
    }
  }

  private final List<RunInput> inputs;
  private final SessionOptions options;
  private final TimeLimits limits;
  private final boolean failFast;
  private final boolean logOutput;
  private final Function<RunInput, Experiment> experiment;
  private final PrintWriter err;
  private final List<Experiment> kept = new ArrayList<>();

  private volatile @Nullable RecordedRun running;
  private @Nullable String stopped;

  public NotebookQueue(
      List<RunInput> inputs,
      SessionOptions options,
      TimeLimits limits,
      boolean failFast,
      boolean logOutput,
      Function<RunInput, Experiment> experiment,
      PrintWriter err) {
    this.inputs = List.copyOf(inputs);
    this.options = options;
    this.limits = limits;
    this.failFast = failFast;
    this.logOutput = logOutput;
    this.experiment = experiment;
    this.err = err;
  }

  /// Runs all notebooks. A signal ends the running one, and no other starts.
  public <T> T run(Ending<T> ending) throws IOException {
    return SignalledSession.inOrder(
        this::stop, this::endRanks, () -> ending.of(all(ending), List.copyOf(kept), options));
  }

  private List<NotebookRun> all(Ending<?> ending) {
    var runs = new ArrayList<NotebookRun>();
    for (var input : inputs) {
      if (inputs.size() > 1) {
        say(
            "braid: notebook %d of %d: %s"
                .formatted(runs.size() + 1, inputs.size(), input.notebook().name()));
      }
      var begun = experiment.apply(input);
      var unstarted = unstarted(input, begun, runs);
      if (unstarted.isEmpty()) {
        ending.unfinished(unfinished(runs, begun));
      }
      var run = finished(input, unstarted.isPresent() ? unstarted.get() : run(input, begun));
      run.result().trouble().ifPresent(trouble -> say("braid: " + trouble));
      run.differences()
          .forEach(difference -> say("braid: " + run.result().notebook() + ": " + difference));
      runs.add(run);
    }
    return runs;
  }

  /// Results of the notebooks before, of the next one, and of the rest.
  private List<NotebookRun> unfinished(List<NotebookRun> before, Experiment next) {
    var all = new ArrayList<>(before);
    for (var input : inputs.subList(before.size(), inputs.size())) {
      var why =
          all.size() == before.size()
              ? "did not finish: the process ended meanwhile; %s has the cells that ran"
                  .formatted(input.output(next.directory()))
              : "not run: the process ended in an earlier notebook";
      all.add(
          NotebookRun.unchecked(input.notebook(), notRun(input, next, ExitCode.CELL_FAILED, why)));
    }
    return all;
  }

  private static NotebookRun finished(RunInput input, RunResult result) {
    var run =
        input
            .recording()
            .map(recording -> NotebookRun.checked(input.notebook(), result, recording))
            .orElseGet(() -> NotebookRun.unchecked(input.notebook(), result));
    return input.records() && run.exitCode() == ExitCode.OK ? stored(input, run) : run;
  }

  private static NotebookRun stored(RunInput input, NotebookRun run) {
    try {
      var manifest = run.manifest();
      if (manifest.isEmpty()) {
        return run.troubled(
            "--record names the machine from the manifest of the run but it has none; %s is unchanged"
                .formatted(input.file()));
      }
      Recording.store(run.notebook(), input.file(), manifest.get().json());
      return run;
    } catch (IOException e) {
      return run.troubled(
          "--record must be able to write %s but could not (%s); check its permissions and the free space"
              .formatted(input.file(), e.getClass().getSimpleName()));
    } catch (BraidException e) {
      return run.troubled(String.valueOf(e.getMessage()));
    }
  }

  /// Result of a notebook that will not start.
  private Optional<RunResult> unstarted(RunInput input, Experiment next, List<NotebookRun> before) {
    var why = stopReason();
    if (why.isPresent()) {
      return Optional.of(notRun(input, next, ExitCode.CELL_FAILED, "not run: " + why.get()));
    }
    var over = limits.over();
    if (over.isPresent() && !before.isEmpty()) {
      return Optional.of(
          notRun(
              input,
              next,
              ExitCode.TIMEOUT,
              "not run: " + over.get() + " was over before it began"));
    }
    return failFast && before.stream().anyMatch(run -> run.exitCode() != ExitCode.OK)
        ? Optional.of(
            notRun(input, next, ExitCode.OK, "not run: an earlier notebook failed (--fail-fast)"))
        : Optional.empty();
  }

  private static RunResult notRun(
      RunInput input, Experiment experiment, ExitCode exitCode, String why) {
    return NotebookRunner.notRun(
        input.notebook(), input.output(experiment.directory()), exitCode, why);
  }

  private RunResult run(RunInput input, Experiment begun) {
    try (var progress = progress()) {
      var output = input.output(begun.directory());
      var runner = new NotebookRunner(input.notebook(), output, limits, progress);
      kept.add(begun);
      begun.tell(progress::cellMeasured);
      var recorded = new RecordedRun(input.notebook(), output, runner, begun, err);
      begin(recorded);
      return recorded.on(options);
    } catch (SignalledSession.StartInterrupted e) {
      if (kept.size() == 1) {
        throw e; // no notebook has a result
      }
      return notRun(input, begun, ExitCode.CELL_FAILED, "not run: " + e.getMessage());
    } catch (BraidException e) {
      // Ranks that cannot start now may start for the next notebook.
      return notRun(input, begun, ExitCode.USAGE, "not run: " + e.getMessage());
    }
  }

  private RunProgress progress() {
    return logOutput ? new LoggedOutput(err) : progress(err);
  }

  /// Returns progress for the terminal, or in lines if stderr goes elsewhere.
  public static RunProgress progress(PrintWriter err) {
    return Terminal.isStandardError()
        ? new TerminalProgress(err, Terminal.columns(Env.here()))
        : new PlainProgress(err);
  }

  private synchronized void begin(RecordedRun recorded) {
    running = recorded;
    if (stopped != null) {
      recorded.stop(stopped);
    }
  }

  private synchronized void stop(String reason) {
    stopped = reason;
    if (running != null) {
      running.stop(reason);
    }
  }

  /// Not synchronized: starting a notebook may take a while.
  private void endRanks() {
    var recorded = running;
    if (recorded != null) {
      recorded.endRanks();
    }
  }

  private synchronized Optional<String> stopReason() {
    return Optional.ofNullable(stopped);
  }

  private void say(String line) {
    err.println(line);
    err.flush();
  }
}
