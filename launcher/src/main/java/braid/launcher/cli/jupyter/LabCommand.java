package braid.launcher.cli.jupyter;

import braid.BraidException;
import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.Installation;
import braid.launcher.cli.home.RankOptions;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `braid lab`: Jupyter on the notebooks. It is given the kernelspec by `JUPYTER_PATH`, from a
/// directory that is gone afterwards, so nothing is installed.
@Command(
    name = "lab",
    description = "Opens Jupyter on the notebooks, with the Braid kernel; installs nothing.",
    mixinStandardHelpOptions = true,
    footerHeading = "%nExamples:%n",
    footer = {
      "  braid lab -n 4",
      "  braid lab --notebooks ~/tuning -- --no-browser --port 9999",
    })
public final class LabCommand implements Callable<Integer> {
  /// How long Jupyter may take to end its kernels when it is told to end.
  private static final long END_PATIENCE_SECONDS = 15;

  @Mixin private RankOptions ranks = new RankOptions();

  @Option(
      names = "--notebooks",
      paramLabel = "DIR",
      description = "The directory to open. Default: Braid's own notebooks.")
  private @Nullable Path notebooks;

  @Parameters(
      paramLabel = "-- JUPYTER ARGUMENTS",
      description = "What Jupyter is started with besides.",
      arity = "0..*")
  private List<String> more = new ArrayList<>();

  @Override
  public Integer call() throws IOException, InterruptedException {
    var paths = new JupyterPaths(Env.here());
    var directory = directory();
    var jupyter =
        paths
            .application()
            .orElseThrow(
                () ->
                    new BraidException(
                        "lab needs jupyter-lab or jupyter-notebook on PATH but found neither;"
                            + " install one: apt install jupyter-notebook, or pip install jupyterlab"
                            + " (braid run NOTEBOOK needs no Jupyter)"));
    var data = Files.createTempDirectory("braid-jupyter");
    var kernel = KernelInstall.spec(KernelSpec.directory(data, KernelSpec.DEFAULT_NAME), ranks);
    try {
      kernel.write();
      return run(command(jupyter, directory), path(data, paths));
    } finally {
      kernel.remove();
      Files.deleteIfExists(data.resolve("kernels"));
      Files.deleteIfExists(data);
    }
  }

  private Path directory() {
    var directory =
        notebooks != null
            ? notebooks
            : Installation.home()
                .map(home -> home.resolve("notebooks"))
                .filter(Files::isDirectory)
                .orElse(Path.of(""));
    if (!Files.isDirectory(directory.toAbsolutePath())) {
      throw new BraidException(
          "--notebooks must be a directory but " + directory + " is none; check the path");
    }
    return directory.toAbsolutePath();
  }

  private List<String> command(Path jupyter, Path directory) {
    var command = new ArrayList<>(List.of(jupyter.toString(), directory.toString()));
    command.addAll(more);
    return command;
  }

  private static String path(Path data, JupyterPaths paths) {
    var path = new StringBuilder(data.toString());
    paths.env().jupyterPath().forEach(entry -> path.append(File.pathSeparator).append(entry));
    return path.toString();
  }

  /// Ctrl-C reaches Jupyter too, which would ask whether it is meant; the hook answers yes.
  private static int run(List<String> command, String jupyterPath)
      throws IOException, InterruptedException {
    var builder = new ProcessBuilder(command).inheritIO();
    builder.environment().put("JUPYTER_PATH", jupyterPath);
    var jupyter = builder.start();
    var hook = new Thread(() -> end(jupyter), "end Jupyter");
    Runtime.getRuntime().addShutdownHook(hook);
    int exit = jupyter.waitFor();
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      // the JVM is ending, which is why Jupyter did
    }
    return exit;
  }

  private static void end(Process jupyter) {
    jupyter.destroy();
    try {
      if (!jupyter.waitFor(END_PATIENCE_SECONDS, TimeUnit.SECONDS)) {
        jupyter.destroyForcibly();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
