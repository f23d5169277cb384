package braid.launcher.cli.jupyter;

import braid.launcher.cli.home.Env;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;

/// The directories Jupyter looks for kernelspecs in, found as Jupyter itself finds them.
public record JupyterPaths(Env env) {
  private static final List<String> PROGRAMS =
      List.of("jupyter-lab", "jupyter-notebook", "jupyter");

  /// Where `--user` puts things.
  Path userData() {
    return env.jupyterDataDirectory()
        .or(() -> env.xdgDataHome().map(directory -> directory.resolve("jupyter")))
        .orElseGet(() -> env.userHome().resolve(".local/share/jupyter"));
  }

  static Path dataUnder(Path prefix) {
    return prefix.resolve("share/jupyter");
  }

  /// All of them, in the order Jupyter looks; the first that has a name wins.
  List<Path> data() {
    var directories = new LinkedHashSet<Path>(env.jupyterPath());
    directories.add(userData());
    prefixOfJupyter().map(JupyterPaths::dataUnder).ifPresent(directories::add);
    directories.add(Path.of("/usr/local/share/jupyter"));
    directories.add(Path.of("/usr/share/jupyter"));
    return new ArrayList<>(directories);
  }

  /// `jupyter-lab`, else `jupyter-notebook`.
  public Optional<Path> application() {
    return env.program("jupyter-lab").or(() -> env.program("jupyter-notebook"));
  }

  /// Any Jupyter program, to say what is there.
  public Optional<Path> anyProgram() {
    return PROGRAMS.stream().map(env::program).flatMap(Optional::stream).findFirst();
  }

  /// Jupyter's `sys.prefix`, for a Jupyter in a virtual environment.
  private Optional<Path> prefixOfJupyter() {
    return anyProgram()
        .flatMap(
            program -> {
              try {
                return Optional.ofNullable(program.toRealPath().getParent()).map(Path::getParent);
              } catch (IOException e) {
                return Optional.empty(); // gone since it was found
              }
            });
  }
}
