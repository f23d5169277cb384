package braid.launcher.cli.jupyter;

import braid.model.BraidException;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/// The options that say which kernelspec: where it is, and its name.
final class KernelPlace {
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
      description = "What Jupyter calls it. Default: ${DEFAULT-VALUE}.")
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
          "--user and --prefix must not both be given but were; drop --user to install under "
              + prefix);
    }
    return JupyterPaths.dataUnder(prefix.toAbsolutePath());
  }
}
