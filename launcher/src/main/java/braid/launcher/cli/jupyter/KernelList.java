package braid.launcher.cli.jupyter;

import braid.launcher.cli.home.Env;
import braid.launcher.cli.run.VisibleText;
import java.io.IOException;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/// `braid kernel list`.
@Command(
    name = "list",
    description = "Lists the Braid kernelspecs that Jupyter can see.",
    mixinStandardHelpOptions = true)
final class KernelList implements Callable<Integer> {
  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() throws IOException {
    var kernels = KernelSpec.all(new JupyterPaths(Env.here()));
    var out = spec.commandLine().getOut();
    if (kernels.isEmpty()) {
      out.println("no Braid kernelspec is installed; try braid kernel install");
    }
    int nameColumns = kernels.stream().mapToInt(k -> k.name().length()).max().orElse(0);
    int displayColumns =
        kernels.stream().mapToInt(k -> VisibleText.line(k.displayName()).length()).max().orElse(0);
    for (var kernel : kernels) {
      out.printf(
          "%-" + nameColumns + "s  %-" + displayColumns + "s  %s%n",
          kernel.name(),
          VisibleText.line(kernel.displayName()),
          kernel.directory());
    }
    out.flush();
    return 0;
  }
}
