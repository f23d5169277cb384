package braid.launcher.cli.doctor;

import braid.launcher.cli.home.Env;
import braid.launcher.cli.jupyter.JupyterPaths;
import braid.launcher.cli.jupyter.KernelSpec;
import java.io.IOException;
import java.util.List;
import java.util.stream.Collectors;

/// Checks of Jupyter, which `braid run` does not need.
final class JupyterChecks {
  private JupyterChecks() {}

  static List<Check> all(Env env) throws IOException {
    var paths = new JupyterPaths(env);
    return List.of(application(paths), kernels(KernelSpec.all(paths)));
  }

  private static Check application(JupyterPaths paths) {
    var remedy = "apt install jupyter-notebook, or pip install jupyterlab";
    return paths
        .application()
        .map(program -> Check.ok("jupyter", "Jupyter", program.toString()))
        .orElseGet(
            () ->
                Check.absent(
                    "jupyter",
                    "Jupyter",
                    "no jupyter-lab or jupyter-notebook on PATH"
                        + paths.anyProgram().map(p -> ", only " + p).orElse(""),
                    remedy));
  }

  private static Check kernels(List<KernelSpec> kernels) {
    if (kernels.isEmpty()) {
      return Check.absent(
          "kernelspecs", "kernelspecs", "none of Braid's", "braid kernel install, or braid lab");
    }
    return Check.ok(
        "kernelspecs",
        "kernelspecs",
        kernels.stream()
            .map(kernel -> kernel.displayName() + " in " + kernel.directory())
            .collect(Collectors.joining(", ")));
  }
}
