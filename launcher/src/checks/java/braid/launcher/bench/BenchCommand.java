package braid.launcher.bench;

import braid.launcher.cli.CheckCommand;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// `braid bench`: benchmarks of Braid, one per subcommand.
@Command(
    name = "bench",
    description = "Measures Braid and compares it with ipyparallel and PyTorch.",
    subcommands = {
      FrontCommand.class,
      GpuCommand.class,
      PredictionsCommand.class,
      ScaleCommand.class,
      FrontProbe.class,
      ScaleProbe.class,
      ScaleRanks.class,
    },
    mixinStandardHelpOptions = true,
    synopsisSubcommandLabel = "COMMAND",
    commandListHeading = "%nCommands:%n")
public final class BenchCommand implements Runnable, CheckCommand {
  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public void run() {
    throw new ParameterException(
        spec.commandLine(), "a command is missing: front, gpu, predictions or scale");
  }
}
