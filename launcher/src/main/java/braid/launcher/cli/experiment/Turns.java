package braid.launcher.cli.experiment;

import braid.launcher.ExitCode;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.HostOptions;
import braid.launcher.cli.run.NotebookQueue;
import braid.launcher.cli.run.Repetition;
import braid.launcher.experiment.Experiments;
import braid.launcher.experiment.Experiments.Found;
import braid.model.BraidException;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Model.CommandSpec;

/// Two programs that run in turns, A B, B A, A B, on fresh ranks each: a load that comes, goes or
/// drifts meets both. Every turn is a run of its own; the studies of all turns of one program are
/// pooled.
final class Turns {
  static final int DEFAULT = 3;
  private static final int MOST = 100;

  /// A program that can run several times.
  interface Side {
    ExitCode run(NotebookQueue.Ending<ExitCode> ending) throws IOException;
  }

  private final Side a;
  private final Side b;
  private final int turns;
  private final PrintWriter err;
  private final List<HostOptions> hosts;
  private final List<Path> ofFirst = new ArrayList<>();
  private final List<Path> ofSecond = new ArrayList<>();

  Turns(Side a, Side b, int turns, PrintWriter err) {
    this(a, b, turns, err, List.of());
  }

  /// @param hosts closed after the last turn
  private Turns(Side a, Side b, int turns, PrintWriter err, List<HostOptions> hosts) {
    if (turns < 1 || turns > MOST) {
      throw new BraidException(
          "--turns must be 1..%d but was %d; try --turns %d".formatted(MOST, turns, DEFAULT));
    }
    this.a = a;
    this.b = b;
    this.turns = turns;
    this.err = err;
    this.hosts = hosts;
  }

  /// Returns turns that repeat two runs.
  ///
  /// @throws BraidException if one of the two cannot be repeated here
  static Turns repeating(Source a, Source b, int turns, Experiments experiments, CommandSpec spec)
      throws IOException {
    var first = repeatable(a, experiments);
    var second = repeatable(b, experiments);
    var cwd = first.manifest().text("workingDirectory");
    if (!cwd.equals(second.manifest().text("workingDirectory"))) {
      throw new BraidException(
          "two runs must have one working directory to be repeated in turns but %s has %s and %s has %s; repeat them with braid rerun"
              .formatted(
                  a.id(),
                  cwd.orElse("none"),
                  b.id(),
                  second.manifest().text("workingDirectory").orElse("none")));
    }
    var command = spec.root().commandLine().getParseResult().originalArgs();
    var err = spec.commandLine().getErr();
    var ofA = new HostOptions();
    var ofB = new HostOptions();
    return new Turns(
        side(new Repetition(first, command, Env.here(), ofA), err),
        side(new Repetition(second, command, Env.here(), ofB), err),
        turns,
        err,
        List.of(ofA, ofB));
  }

  private static Side side(Repetition repetition, PrintWriter err) {
    return ending -> repetition.run(repetition.inputs(null), ending, err);
  }

  private static Found repeatable(Source source, Experiments experiments) {
    return source
        .manifest()
        .map(manifest -> experiments.find(manifest.id()))
        .orElseThrow(
            () ->
                new BraidException(
                    "what is repeated must be a run but %s is a study without one; name a run"
                        .formatted(source.id())));
  }

  /// Runs all turns; ends with the first that fails.
  ExitCode run() throws IOException {
    try {
      return allTurns();
    } finally {
      hosts.forEach(HostOptions::close);
    }
  }

  private ExitCode allTurns() throws IOException {
    for (int turn = 1; turn <= turns; turn++) {
      boolean forward = turn % 2 == 1;
      var code = forward ? turn(turn, "A", a, ofFirst) : turn(turn, "B", b, ofSecond);
      if (code == ExitCode.OK) {
        code = forward ? turn(turn, "B", b, ofSecond) : turn(turn, "A", a, ofFirst);
      }
      if (code != ExitCode.OK) {
        return code;
      }
    }
    return ExitCode.OK;
  }

  private ExitCode turn(int turn, String name, Side side, List<Path> done) throws IOException {
    err.println("braid: turn %d of %d, %s".formatted(turn, turns, name));
    err.flush();
    var runs = new ArrayList<Path>();
    NotebookQueue.Ending<ExitCode> ending = (results, _, _) -> results.getFirst().exitCode();
    var code = side.run(ending.noting(runs));
    if (code == ExitCode.OK) {
      done.add(runs.getFirst());
    } else {
      err.println(
          "braid: turn %d of %s failed, so nothing is compared%s"
              .formatted(turn, name, runs.isEmpty() ? "" : "; see " + runs.getFirst()));
    }
    return code;
  }

  /// Returns the folders of the runs of A.
  List<Path> first() {
    return List.copyOf(ofFirst);
  }

  /// Returns the folders of the runs of B.
  List<Path> second() {
    return List.copyOf(ofSecond);
  }
}
