package braid.launcher.cli.jupyter;

import braid.launcher.cli.home.Env;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.UUID;

/// Directories in which Jupyter searches for kernelspecs, found as Jupyter finds them.
public record JupyterPaths(Env env) {
  private static final int MAX_SOCKET_PATH_BYTES = 107;

  private static final List<String> PROGRAMS =
      List.of("jupyter-lab", "jupyter-notebook", "jupyter");

  /// Directory of `--user`.
  Path userData() {
    return env.jupyterDataDirectory()
        .or(() -> env.xdgDataHome().map(directory -> directory.resolve("jupyter")))
        .orElseGet(() -> env.userHome().resolve(".local/share/jupyter"));
  }

  /// Returns true if Linux accepts the paths of Unix sockets where Jupyter puts them, beside the
  /// connection file of a kernel.
  boolean hasRoomForSockets() {
    var directory = env.jupyterRuntimeDirectory().orElse(userData().resolve("runtime"));
    var socket = directory.toAbsolutePath().resolve("kernel-%s-ipc-1".formatted(new UUID(0, 0)));
    return socket.toString().getBytes(StandardCharsets.UTF_8).length <= MAX_SOCKET_PATH_BYTES;
  }

  static Path dataUnder(Path prefix) {
    return prefix.resolve("share/jupyter");
  }

  /// All directories in Jupyter's order; the first with a name wins.
  List<Path> data() {
    var directories = new LinkedHashSet<Path>(env.jupyterPath());
    directories.add(userData());
    prefixOfJupyter().map(JupyterPaths::dataUnder).ifPresent(directories::add);
    directories.add(Path.of("/usr/local/share/jupyter"));
    directories.add(Path.of("/usr/share/jupyter"));
    return new ArrayList<>(directories);
  }

  /// Returns `jupyter-lab`, else `jupyter-notebook`.
  public Optional<Path> application() {
    return env.program("jupyter-lab").or(() -> env.program("jupyter-notebook"));
  }

  /// Returns any Jupyter program, for messages.
  public Optional<Path> anyProgram() {
    return PROGRAMS.stream().map(env::program).flatMap(Optional::stream).findFirst();
  }

  /// Returns Jupyter's `sys.prefix`, for a Jupyter in a virtual environment.
  private Optional<Path> prefixOfJupyter() {
    return anyProgram()
        .flatMap(
            program -> {
              try {
                return Optional.ofNullable(program.toRealPath().getParent()).map(Path::getParent);
              } catch (IOException e) {
                return Optional.empty(); // removed meanwhile
              }
            });
  }
}
