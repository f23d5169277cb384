package braid.launcher.cli.jupyter;

import braid.launcher.cli.home.Env;
import braid.launcher.cli.home.Installation;
import braid.launcher.cli.home.RankOptions;
import braid.model.BraidException;
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

/// `braid lab`: Jupyter on the notebooks. Jupyter finds the kernelspec by `JUPYTER_PATH`, in a
/// temporary directory, so nothing is installed. However the command ends, Jupyter ends with it.
@Command(
    name = "lab",
    description = "Opens Jupyter on the notebooks, with the Braid kernel; installs nothing.",
    mixinStandardHelpOptions = true,
    footer = {
      "  braid lab -n 4",
      "  braid lab --notebooks ~/tuning -- --no-browser --port 9999",
    })
public final class LabCommand implements Callable<Integer> {
  /// Time for Jupyter to end its kernels after SIGTERM.
  private static final long END_PATIENCE_SECONDS = 15;

  /// File with Jupyter's pid in the folder.
  private static final String PID = "pid";

  /// Ends Jupyter after this process was killed. The argument is the folder. Once it is renamed, a
  /// Jupyter that has not written its pid cannot start.
  private static final String WATCHER =
      """
      trap '' INT TERM HUP
      read -r _ && exit
      mv -- "$1" "$1.ended"
      pid=
      while [ -e "$1.ended/%1$s" ] && ! read -r pid < "$1.ended/%1$s"; do sleep 0.1; done
      rm -rf -- "$1.ended"
      if [ -n "$pid" ]; then
        kill -TERM "$pid"
        left=%2$d
        while kill -0 "$pid" && [ $left -gt 0 ]; do sleep 1; left=$((left - 1)); done
        kill -KILL "$pid"
      fi
      """
          .formatted(PID, END_PATIENCE_SECONDS);

  /// Starts Jupyter after writing its pid for the watcher. Arguments: the folder and Jupyter's
  /// command.
  private static final String START =
      """
      echo $$ > "$1/%s" || exit
      shift
      exec "$@"
      """
          .formatted(PID);

  @Mixin private RankOptions ranks = new RankOptions();

  @Option(
      names = "--notebooks",
      paramLabel = "DIR",
      description = "The directory to open. Default: Braid's own notebooks.")
  private @Nullable Path notebooks;

  @Parameters(
      paramLabel = "-- JUPYTER ARGUMENTS",
      description = "Further arguments of Jupyter.",
      arity = "0..*")
  private List<String> jupyterArguments = new ArrayList<>();

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
    try (var data = JupyterFolder.create(Path.of(System.getProperty("java.io.tmpdir")))) {
      KernelInstall.spec(KernelSpec.directory(data.path(), KernelSpec.DEFAULT_NAME), ranks).write();
      return run(command(jupyter, directory, paths), path(data.path(), paths), data);
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
          "--notebooks must be a directory but " + directory + " is not one; check the path");
    }
    return directory.toAbsolutePath();
  }

  /// Kernels and Jupyter meet in Unix sockets, unless the user chooses: no other user of this
  /// machine can connect to them.
  private List<String> command(Path jupyter, Path directory, JupyterPaths paths) {
    var command = new ArrayList<>(List.of(jupyter.toString(), directory.toString()));
    boolean chosen = jupyterArguments.stream().anyMatch(each -> each.contains("transport"));
    if (!chosen && paths.hasRoomForSockets()) {
      command.add("--KernelManager.transport=ipc");
    }
    command.addAll(jupyterArguments);
    return command;
  }

  private static String path(Path data, JupyterPaths paths) {
    var path = new StringBuilder(data.toString());
    paths.env().jupyterPath().forEach(entry -> path.append(File.pathSeparator).append(entry));
    return path.toString();
  }

  /// Runs Jupyter. Ctrl-C also reaches Jupyter, which would ask for confirmation; the hook ends it.
  private static int run(List<String> command, String jupyterPath, JupyterFolder data)
      throws IOException, InterruptedException {
    var watcher = watcher(data);
    var started = new ArrayList<>(List.of("sh", "-c", START, "sh", data.path().toString()));
    started.addAll(command);
    var builder = new ProcessBuilder(started).inheritIO();
    builder.environment().put("JUPYTER_PATH", jupyterPath);
    var jupyter = builder.start();
    var hook = new Thread(() -> end(jupyter, watcher, data), "end Jupyter");
    Runtime.getRuntime().addShutdownHook(hook);
    int exit = jupyter.waitFor();
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      // the JVM is ending, which is why Jupyter did
    }
    dismiss(watcher);
    return exit;
  }

  /// Starts a process that ends Jupyter if this one is killed: its input then ends without a line.
  private static Process watcher(JupyterFolder data) throws IOException {
    return new ProcessBuilder("sh", "-c", WATCHER, "sh", data.path().toString())
        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
        .redirectError(ProcessBuilder.Redirect.DISCARD)
        .start();
  }

  private static void dismiss(Process watcher) throws IOException {
    try (var input = watcher.getOutputStream()) {
      input.write('\n');
    }
  }

  private static void end(Process jupyter, Process watcher, JupyterFolder data) {
    jupyter.destroy();
    try {
      if (!jupyter.waitFor(END_PATIENCE_SECONDS, TimeUnit.SECONDS)) {
        jupyter.destroyForcibly();
      }
      data.close();
      dismiss(watcher);
    } catch (IOException e) {
      System.err.println("braid: " + data.path() + " could not be removed: " + e.getMessage());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
