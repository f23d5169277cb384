package braid.launcher.cli;

import braid.launcher.Counted;
import braid.launcher.ExitCode;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.Installation;
import braid.launcher.cli.home.RankOptions;
import braid.launcher.machine.RankCount;
import braid.launcher.soak.SoakRun;
import braid.model.BraidException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ThreadLocalRandom;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// `braid soak`: attacks live sessions at random, one in this process and one under Jupyter.
@Command(
    name = "soak",
    description =
        "Kills, freezes, interrupts, floods and restarts live sessions at random, one headless and one"
            + " under jupyter_client, and checks after each that the failure was named, that the session"
            + " works and that nothing is left.",
    mixinStandardHelpOptions = true,
    exitCodeList = {" 0:every check passed", " 1:a check failed", " 2:a mistake in the options"},
    footer = {
      "  braid soak",
      "  braid soak --seconds 600 --seed 7 -n 3",
      "  braid soak -n 4 --share-gpus --only headless",
    })
public final class SoakCommand implements Callable<Integer>, CheckCommand {
  private static final int MOST_SECONDS = 1_000_000;
  private static final int DRAWN_SEEDS = 1_000_000_000;

  @Mixin private RankOptions ranks = new RankOptions();

  @Option(
      names = "--seconds",
      paramLabel = "SECONDS",
      description = "Duration. Default: ${DEFAULT-VALUE}.")
  private int seconds = 60;

  @Option(
      names = "--seed",
      paramLabel = "S",
      description = "Seed of the attacks. Default: drawn and printed.")
  private @Nullable Long seed;

  @Option(
      names = "--only",
      paramLabel = "SESSION",
      description = "headless or jupyter. Default: both, side by side.")
  private @Nullable String only;

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() throws IOException, InterruptedException {
    check("--seconds", seconds, 1, MOST_SECONDS);
    if (only != null && !SoakRun.SESSIONS.contains(only)) {
      throw new BraidException(
          "--only must be one of %s but was \"%s\"; leave it out for all"
              .formatted(String.join(", ", SoakRun.SESSIONS), only));
    }
    long first = seed != null ? seed : ThreadLocalRandom.current().nextInt(DRAWN_SEEDS);
    progress("seed " + first);
    var sessions = only == null ? SoakRun.SESSIONS : List.of(only);
    var env = Env.here();
    var machine = env.machine();
    var options = ranks.session(env, machine, Path.of("").toAbsolutePath());
    progress("on %s, backend %s".formatted(Counted.of(options.ranks(), "rank"), options.backend()));
    var run = new SoakRun(options, seconds, first, sessions, kernel(machine), this::progress);
    return (run.run(spec.commandLine().getOut()) ? ExitCode.OK : ExitCode.CELL_FAILED).code();
  }

  /// Returns the command by which Jupyter starts a kernel.
  private List<String> kernel(RankCount machine) {
    var command = new ArrayList<>(Installation.command());
    command.addAll(List.of("kernel", "start", "{connection_file}"));
    command.addAll(ranks.arguments(machine));
    return command;
  }

  private void progress(String line) {
    var err = spec.commandLine().getErr();
    err.println("braid soak: " + line);
    err.flush();
  }

  private static void check(String option, int value, int least, int most) {
    if (value < least || value > most) {
      throw new BraidException(
          "%s must be %d..%d but was %d; try %s %d"
              .formatted(option, least, most, value, option, Math.max(least, 3)));
    }
  }
}
