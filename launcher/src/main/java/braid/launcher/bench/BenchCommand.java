package braid.launcher.bench;

import braid.launcher.bench.life.LifeCommand;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// `braid bench`: the benchmarks of Braid itself, one a subcommand.
@Command(
    name = "bench",
    description = "Measures Braid itself beside what people use today.",
    subcommands = {
      FrontCommand.class,
      LifeCommand.class,
      StartProbe.class,
    },
    mixinStandardHelpOptions = true,
    synopsisSubcommandLabel = "COMMAND",
    commandListHeading = "%nCommands:%n")
public final class BenchCommand implements Runnable {
  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public void run() {
    throw new ParameterException(spec.commandLine(), "a command is missing: front or life");
  }
}
