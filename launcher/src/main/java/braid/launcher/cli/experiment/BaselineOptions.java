package braid.launcher.cli.experiment;

import braid.launcher.ExitCode;
import braid.launcher.cli.home.WorkingDirectory;
import braid.launcher.cli.run.NotebookQueue;
import braid.launcher.cli.run.RunInputs;
import braid.launcher.experiment.Experiment;
import braid.launcher.experiment.Experiments;
import braid.launcher.notebook.check.NotebookRun;
import braid.launcher.session.SessionOptions;
import braid.model.BraidException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Option;

/// Options by which a run is judged against earlier ones at its end, by `braid compare`. Verdicts
/// are printed, and kept in the folder of the run.
public final class BaselineOptions {
  private static final String CSV = "comparison.csv";
  private static final String JUNIT = "comparison.xml";

  @Option(
      names = "--baseline",
      paramLabel = "RUN",
      description =
          "Judges each notebook's run as compare RUN does, with its exit codes: an id, a path,"
              + " latest, previous, or last:5 for the newest five in one state. A first run has no"
              + " such baseline and is not judged. The verdicts are also in the folder of the run:"
              + " comparison.csv, and comparison.xml for JUnit.")
  private @Nullable String baseline;

  @Option(
      names = "--threshold",
      paramLabel = "PERCENT",
      description = "With --baseline: as of compare. Default: 3.")
  private @Nullable String threshold;

  @Option(
      names = "--fail-on-undecided",
      description = "With --baseline: exits with 6 also where a configuration is undecided.")
  private boolean failOnUndecided;

  /// Returns an ending that judges the runs after another ending.
  ///
  /// @throws BraidException if there is no such baseline, or there are several starts
  public NotebookQueue.Ending<Integer> judging(
      NotebookQueue.Ending<Integer> ending, RunInputs inputs, Starts starts, CommandLine braid) {
    if (baseline == null) {
      if (threshold != null || failOnUndecided) {
        throw new BraidException(
            "%s has no effect without --baseline; add it"
                .formatted(threshold != null ? "--threshold" : "--fail-on-undecided"));
      }
      return ending;
    }
    if (starts.areSeveral()) {
      throw new BraidException(
          "--baseline judges a run at its end but --starts runs it several times; leave it out, then braid compare %s latest"
              .formatted(baseline));
    }
    CompareCommand.share(threshold);
    var wanted = baseline;
    var runs = new Experiments(WorkingDirectory.called().resolve("runs"));
    // Before the run, which would be the latest itself afterwards.
    var baselines =
        inputs.all().stream()
            .map(input -> String.valueOf(input.file().getFileName()))
            .map(notebook -> resolved(wanted, runs, notebook))
            .toList();
    return new NotebookQueue.Ending<>() {
      @Override
      public void unfinished(List<NotebookRun> all) {
        ending.unfinished(all);
      }

      @Override
      public Integer of(List<NotebookRun> all, List<Experiment> kept, SessionOptions options)
          throws IOException {
        var codes = new ArrayList<>(List.of(ExitCode.of(ending.of(all, kept, options))));
        for (int i = 0; i < all.size(); i++) {
          var run = all.get(i);
          if (run.exitCode() != ExitCode.OK || run.manifest().isEmpty()) {
            continue;
          }
          var id = run.manifest().get().id();
          var first = baselines.get(i);
          if (first.isPresent()) {
            codes.add(compare(first.get(), id, runs, braid));
          } else {
            braid
                .getOut()
                .println(
                    "not judged: %s needs a completed run with a study before %s but there is none"
                        .formatted(wanted, id));
          }
        }
        return ExitCode.worst(codes).code();
      }
    };
  }

  /// Returns a name that means the same after the run; empty for `latest` and its like before the
  /// first run.
  private static Optional<String> resolved(String name, Experiments runs, String notebook) {
    boolean rolling = Source.isRolling(name);
    if (rolling) {
      Source.checkRolling(name);
    }
    if (Source.isByTime(name) && !runs.hasCompleted(notebook)) {
      return Optional.empty();
    }
    if (rolling) {
      Source.rolling(name, runs, Optional.of(notebook), Optional.empty());
      return Optional.of(name);
    }
    var source = Source.named(name, runs, Optional.of(notebook));
    return Optional.of(Experiments.isByTime(name) ? source.id() : name);
  }

  private ExitCode compare(String from, String run, Experiments runs, CommandLine braid) {
    var folder = runs.runs().resolve(run);
    var words = new ArrayList<>(List.of("compare", from, run));
    words.addAll(List.of("--csv", folder.resolve(CSV).toString()));
    words.addAll(List.of("--junit", folder.resolve(JUNIT).toString()));
    if (threshold != null) {
      words.addAll(List.of("--threshold", threshold));
    }
    if (failOnUndecided) {
      words.add("--fail-on-undecided");
    }
    return ExitCode.of(braid.execute(words.toArray(String[]::new)));
  }
}
