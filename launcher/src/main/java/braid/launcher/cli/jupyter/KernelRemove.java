package braid.launcher.cli.jupyter;

import braid.launcher.cli.home.Env;
import braid.model.BraidException;
import java.io.IOException;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/// `braid kernel remove`.
@Command(
    name = "remove",
    description = "Removes a kernelspec that Braid installed.",
    mixinStandardHelpOptions = true)
final class KernelRemove implements Callable<Integer> {
  @Mixin private KernelLocation place = new KernelLocation();
  @Spec private CommandSpec spec = CommandSpec.create();

  @Override
  public Integer call() throws IOException {
    var directory = place.directory(new JupyterPaths(Env.here()));
    var kernel =
        KernelSpec.read(directory)
            .orElseThrow(
                () ->
                    new BraidException(
                        "kernel must be one that Braid installed but "
                            + directory
                            + " holds none; see braid kernel list"));
    kernel.remove();
    var out = spec.commandLine().getOut();
    out.println("removed " + directory);
    out.flush();
    return 0;
  }
}
