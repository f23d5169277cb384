package braid.launcher.cli.jupyter;

import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// `braid kernel`: manages Braid's kernelspecs in Jupyter.
@Command(
    name = "kernel",
    description = "Installs, lists and removes Jupyter kernelspecs of Braid.",
    subcommands = {
      KernelInstall.class,
      KernelList.class,
      KernelRemove.class,
      KernelStart.class,
    },
    mixinStandardHelpOptions = true,
    synopsisSubcommandLabel = "COMMAND",
    commandListHeading = "%nCommands:%n",
    footer = {
      "  braid kernel install -n 4",
      "  braid kernel install --prefix ~/venv -n 8 --name braid-8",
      "  BRAID_RANKS=2 jupyter lab",
    })
public final class KernelCommand implements Runnable {
  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public void run() {
    throw new ParameterException(
        spec.commandLine(), "a command is missing: install, list or remove");
  }
}
