package braid.launcher.cli.jupyter;

import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.Installation;
import braid.launcher.cli.home.RankOptions;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/// `braid kernel install`.
@Command(
    name = "install",
    description = "Installs a kernelspec, so that Jupyter offers the Braid kernel.",
    mixinStandardHelpOptions = true,
    footerHeading = "%n",
    footer = "BRAID_RANKS in Jupyter's environment overrides the rank count when a kernel starts.")
final class KernelInstall implements Callable<Integer> {
  @Mixin private KernelLocation place = new KernelLocation();
  @Mixin private RankOptions ranks = new RankOptions();
  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() throws IOException {
    var paths = new JupyterPaths(Env.here());
    var kernel = spec(place.directory(paths), ranks);
    kernel.write();
    var out = spec.commandLine().getOut();
    out.println("installed \"" + kernel.displayName() + "\" in " + kernel.directory());
    if (!paths.data().contains(place.data(paths))) {
      out.println(
          "Jupyter finds it if it runs from that prefix, or with JUPYTER_PATH="
              + place.data(paths));
    }
    out.flush();
    return 0;
  }

  /// Returns the kernelspec that starts this Braid with these options.
  static KernelSpec spec(Path directory, RankOptions ranks) {
    var env = Env.here();
    var machine = env.machine();
    ranks.check(env, machine);
    var command = new ArrayList<>(Installation.command());
    command.addAll(List.of("kernel", "start", "{connection_file}"));
    command.addAll(ranks.arguments(machine));
    var displayName =
        ranks
            .requestedRanks(machine)
            .map(count -> "Braid (" + count + (count == 1 ? " rank)" : " ranks)"))
            .orElse("Braid");
    return new KernelSpec(directory, displayName, command);
  }
}
