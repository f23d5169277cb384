package braid.launcher.cli.jupyter;

import braid.model.BraidException;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/// Options that select a kernelspec: its directory and its name.
final class KernelLocation {
  @Option(names = "--user", description = "In your own Jupyter directory. This is the default.")
  private boolean user;

  @Option(
      names = "--prefix",
      paramLabel = "DIR",
      description = "In DIR/share/jupyter, for example of a virtual environment.")
  private @Nullable Path prefix;

  @Option(
      names = "--name",
      paramLabel = "NAME",
      description = "Name of the kernelspec. Default: ${DEFAULT-VALUE}.")
  private String name = KernelSpec.DEFAULT_NAME;

  Path directory(JupyterPaths paths) {
    KernelSpec.requireName(name);
    return KernelSpec.directory(data(paths), name);
  }

  Path data(JupyterPaths paths) {
    if (prefix == null) {
      return paths.userData();
    }
    if (user) {
      throw new BraidException(
          "--user and --prefix exclude each other but both were set; drop --user to install under "
              + prefix);
    }
    return JupyterPaths.dataUnder(prefix.toAbsolutePath());
  }
}
