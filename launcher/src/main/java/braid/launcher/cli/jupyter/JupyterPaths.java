package braid.launcher.cli.jupyter;

import braid.launcher.cli.home.Env;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;

/// Directories in which Jupyter searches for kernelspecs, found as Jupyter finds them.
public record JupyterPaths(Env env) {
  private static final List<String> PROGRAMS =
      List.of("jupyter-lab", "jupyter-notebook", "jupyter");

  /// Directory of `--user`.
  Path userData() {
    return env.jupyterDataDirectory()
        .or(() -> env.xdgDataHome().map(directory -> directory.resolve("jupyter")))
        .orElseGet(() -> env.userHome().resolve(".local/share/jupyter"));
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
