package braid.launcher.cli.experiment;

import braid.launcher.ExitCode;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.run.Repetition;
import braid.launcher.experiment.Experiments;
import braid.launcher.experiment.Experiments.Found;
import braid.model.BraidException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import picocli.CommandLine.Model.CommandSpec;

/// Two runs that are repeated in turns, A B, B A, A B, on fresh ranks each: a load that comes, goes
/// or drifts meets both. The repetitions are runs of their own; the studies of all turns of one run
/// are pooled.
final class Turns {
  static final int DEFAULT = 3;
  private static final int MOST = 100;

  private final Source a;
  private final Source b;
  private final int turns;
  private final CommandSpec spec;
  private final List<Source> ofFirst = new ArrayList<>();
  private final List<Source> ofSecond = new ArrayList<>();

  Turns(Source a, Source b, int turns, CommandSpec spec) {
    if (turns < 1 || turns > MOST) {
      throw new BraidException(
          "--turns must be 1..%d but was %d; try --turns %d".formatted(MOST, turns, DEFAULT));
    }
    this.a = a;
    this.b = b;
    this.turns = turns;
    this.spec = spec;
  }

  /// Runs all turns; ends with the first that fails.
  ///
  /// @throws BraidException if one of the two cannot be repeated here
  ExitCode run(Experiments experiments) throws IOException {
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
    var env = Env.here();
    var command = spec.root().commandLine().getParseResult().originalArgs();
    var repeatFirst = new Repetition(first, command, env);
    var repeatSecond = new Repetition(second, command, env);
    for (int turn = 1; turn <= turns; turn++) {
      boolean forward = turn % 2 == 1;
      var code = turn(turn, forward ? "A" : "B", forward ? repeatFirst : repeatSecond, experiments);
      if (code == ExitCode.OK) {
        code = turn(turn, forward ? "B" : "A", forward ? repeatSecond : repeatFirst, experiments);
      }
      if (code != ExitCode.OK) {
        return code;
      }
    }
    return ExitCode.OK;
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

  private ExitCode turn(int turn, String side, Repetition repetition, Experiments experiments)
      throws IOException {
    var err = spec.commandLine().getErr();
    err.println("braid: turn %d of %d, %s".formatted(turn, turns, side));
    var ended = Starts.Ended.of(repetition, err);
    var code = ended.code();
    var runs = ended.runs();
    if (code != ExitCode.OK) {
      err.println(
          "braid: turn %d of %s failed, so nothing is compared%s"
              .formatted(turn, side, runs.isEmpty() ? "" : "; see " + runs.getFirst()));
      return code;
    }
    (side.equals("A") ? ofFirst : ofSecond)
        .add(Source.named(runs.getFirst() + "/", experiments, Optional.empty()));
    return code;
  }

  Source first() {
    return Source.pooled(ofFirst);
  }

  Source second() {
    return Source.pooled(ofSecond);
  }
}
