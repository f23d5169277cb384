package braid.launcher.cli.experiment;

import braid.evidence.Study;
import braid.launcher.Counted;
import braid.launcher.ExitCode;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.HostOptions;
import braid.launcher.cli.run.NotebookQueue;
import braid.launcher.cli.run.Repetition;
import braid.launcher.experiment.Experiments;
import braid.model.BraidException;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/// Further starts of runs, on fresh ranks each: what differs from start to start, such as addresses
/// and clocks, is invisible within one. A further start is a run of its own that names the first;
/// the studies of all starts are read as one ([Source]).
public final class Starts {
  private static final int MOST = 100;

  private final int starts;
  private final List<String> command;
  private final Env env;
  private final HostOptions hosts;
  private final PrintWriter err;

  /// @param starts number of starts, the first included
  /// @param command arguments of `braid`
  /// @param hosts options of the first start's ranks
  /// @throws BraidException if the number is none
  public Starts(int starts, List<String> command, Env env, HostOptions hosts, PrintWriter err) {
    if (starts < 1 || starts > MOST) {
      throw new BraidException(
          "--starts must be 1..%d but was %d; try --starts 8".formatted(MOST, starts));
    }
    this.starts = starts;
    this.command = command;
    this.env = env;
    this.hosts = hosts;
    this.err = err;
  }

  public boolean areSeveral() {
    return starts > 1;
  }

  /// Runs the starts after the first, in turns if there are several notebooks; ends with the first
  /// that fails.
  ///
  /// @param first the runs of the first start
  public ExitCode run(List<Path> first) throws IOException {
    for (int start = 2; start <= starts; start++) {
      for (var folder : first) {
        var experiments = experiments(folder);
        var found = experiments.find(folder + "/");
        say("start %d of %d of %s".formatted(start, starts, found.manifest().id()));
        var repetition = Repetition.start(found, command, env, hosts);
        NotebookQueue.Ending<ExitCode> ending = (results, _, _) -> results.getFirst().exitCode();
        var code = repetition.run(repetition.inputs(null), ending, err);
        if (code != ExitCode.OK) {
          say("start %d failed, so there are fewer starts".formatted(start));
          return code;
        }
      }
    }
    return ExitCode.OK;
  }

  /// Prints a line for each study of the runs, with the rounds of all their starts.
  public static void print(List<Path> first, PrintWriter out) {
    for (var run : first) {
      var pooled = pooled(run);
      if (pooled.isEmpty()) {
        out.println("starts  no study in %s, so nothing is pooled".formatted(run.getFileName()));
        continue;
      }
      for (var study : pooled.get().studies()) {
        out.println("starts  " + study.headline());
      }
      int left = pooled.get().unpooled();
      if (left > 0) {
        out.println(
            "starts  not pooled: %s, because the starts do not share the problem or its configurations"
                .formatted(Counted.of(left, "study", "studies")));
      }
    }
    out.flush();
  }

  /// Returns the studies of a run, with the rounds of all its starts; none if it made none.
  public static List<Study<?>> studies(Path first) {
    return pooled(first).map(Source::studies).orElse(List.of());
  }

  private static Optional<Source> pooled(Path first) {
    var experiments = experiments(first);
    return experiments.find(first + "/").manifest().hasStudy()
        ? Optional.of(Source.ofRuns(List.of(first), experiments))
        : Optional.empty();
  }

  private static Experiments experiments(Path folder) {
    return new Experiments(folder.resolveSibling(""));
  }

  private void say(String line) {
    err.println("braid: " + line);
    err.flush();
  }
}
