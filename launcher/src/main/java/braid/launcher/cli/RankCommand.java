package braid.launcher.cli;

import braid.launcher.ExitCode;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.Installation;
import braid.launcher.hosts.JoinKey;
import braid.launcher.hosts.JoinedRanks;
import braid.launcher.hosts.RankAgent;
import braid.launcher.hosts.RankPlace;
import braid.launcher.notebook.run.TimeLimits;
import braid.model.BraidException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// `braid rank`: joins a front as one of its ranks.
@Command(
    name = "rank",
    description =
        "Joins a command that waits for its ranks (--launcher attach), as one rank, and runs it"
            + " until the command ends. Waits for the command to listen. The rank is BRAID_RANK, else the one that Open MPI, MPICH,"
            + " torchrun, Slurm or Kubernetes tells.",
    mixinStandardHelpOptions = true,
    exitCodeList = {
      " 0:the command has ended its ranks",
      " 1:the command was lost, or never reached",
      " 2:a mistake in the options or variables, or the command refused the rank",
    },
    footer = {
      "  BRAID_RANK=0 braid rank --join braid.join",
      "  srun --ntasks=8 braid rank --join braid.join",
      "  BRAID_JOIN=front:7077/TOKEN torchrun --no-python --nproc-per-node=8 braid rank",
    })
final class RankCommand implements Callable<Integer> {
  @Option(
      names = "--join",
      paramLabel = "FILE",
      description =
          "File with the address and the secret of the command, written by it and readable for its"
              + " owner only. Default: the variable BRAID_JOIN has the text.")
  private @Nullable Path join;

  @Option(
      names = "--join-timeout",
      paramLabel = "TIME",
      description = "Time for the command to listen: 90s, 10m or 1h. Default: 5m.")
  private @Nullable String joinTimeout;

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() {
    var err = spec.commandLine().getErr();
    var env = Env.here();
    var keys = keys(env);
    var place = RankPlace.of(env.variables());
    var patience =
        Optional.ofNullable(joinTimeout)
            .map(text -> TimeLimits.duration("--join-timeout", text))
            .orElse(JoinedRanks.JOIN_TIMEOUT);
    try {
      new RankAgent(keys, place, Installation.version(), env.variables(), System.err::println)
          .run(patience);
      return ExitCode.OK.code();
    } catch (IOException e) {
      err.println("braid: rank %d ends: %s".formatted(place.rank(), e.getMessage()));
      err.flush();
      return ExitCode.CELL_FAILED.code();
    }
  }

  private RankAgent.KeySource keys(Env env) {
    var file = join;
    if (file != null) {
      return () -> JoinKey.read(file);
    }
    var key =
        env.join()
            .map(text -> JoinKey.parse(JoinKey.VARIABLE, text))
            .orElseThrow(
                () ->
                    new BraidException(
                        "braid rank needs the key of the command that it joins; name its file by --join, or set BRAID_JOIN"));
    return () -> key;
  }
}
