package braid.launcher.bench;

import braid.launcher.ExitCode;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.Installation;
import braid.launcher.hosts.JoinKey;
import braid.launcher.hosts.ProtocolRanks;
import java.io.IOException;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// The ranks of the front that `braid bench scale` times. Prints `waiting`, then joins it.
@Command(name = "scale-ranks", hidden = true, description = "The ranks of bench scale.")
final class ScaleRanks implements Callable<Integer> {
  @Parameters(paramLabel = "RANKS", description = "Number of ranks.")
  private int ranks;

  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() throws IOException, InterruptedException {
    var key = JoinKey.parse(JoinKey.VARIABLE, Env.here().join().orElseThrow());
    var out = spec.commandLine().getOut();
    out.println("waiting");
    out.flush();
    new ProtocolRanks(key, ranks, Installation.version()).run();
    return ExitCode.OK.code();
  }
}
