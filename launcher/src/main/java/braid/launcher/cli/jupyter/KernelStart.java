package braid.launcher.cli.jupyter;

import braid.launcher.cli.experiment.SessionManifest;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.Installation;
import braid.launcher.cli.home.RankOptions;
import braid.launcher.kernel.KernelProcess;
import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

/// `braid kernel start`: the command of an installed kernelspec.
@Command(
    name = "start",
    hidden = true,
    description = "Serves Jupyter clients. Started by kernelspecs, not by users.",
    mixinStandardHelpOptions = true)
final class KernelStart implements Callable<Integer> {
  @Parameters(paramLabel = "CONNECTION_FILE", description = "The file that Jupyter wrote.")
  private Path connectionFile = Path.of("");

  @Mixin private RankOptions ranks = new RankOptions();

  @Override
  public Integer call() throws IOException {
    var env = Env.here();
    return KernelProcess.serve(
            Installation.version(),
            connectionFile,
            () -> ranks.ofKernel(env, env.machine()),
            options -> SessionManifest.of(options, env),
            env.jupyter())
        .code();
  }
}
