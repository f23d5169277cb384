package braid.natives.load;

import braid.natives.load.Libraries.Library;
import braid.natives.load.SearchFolder.Source;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedSet;
import org.jspecify.annotations.Nullable;

/// Folders to search for NVIDIA's libraries. This is the only class here that reads the environment
/// and the system's lists. `root` is `/` except in tests.
final class SearchFolders {
  private final Path root;
  private final Map<String, String> environment;
  private final SequencedSet<SearchFolder> found = new LinkedHashSet<>();
  private final List<String> unreadable = new ArrayList<>();

  private SearchFolders(Path root, Map<String, String> environment) {
    this.root = root;
    this.environment = environment;
    toolkits();
    python();
    libraryPath();
    loader();
  }

  static SearchFolders ofThisMachine() {
    return new SearchFolders(Path.of("/"), System.getenv());
  }

  /// Names of the libraries to run without.
  static String without() {
    return System.getenv().getOrDefault(Libraries.WITHOUT, "");
  }

  /// @param more variables that replace those of this process
  static SearchFolders ofThisMachine(Map<String, String> more) {
    var environment = new HashMap<>(System.getenv());
    environment.putAll(more);
    return new SearchFolders(Path.of("/"), environment);
  }

  static SearchFolders of(Path root, Map<String, String> environment) {
    return new SearchFolders(root, environment);
  }

  /// Folders in order of preference among equal versions.
  List<SearchFolder> all() {
    return List.copyOf(found);
  }

  /// Returns the only folder to search for a library; empty if the user has chosen none. A value of
  /// another form is refused where a rank reads its variables.
  Optional<SearchFolder> chosen(Library library) {
    try {
      var folders = LibrarySearch.folders(environment.getOrDefault(Libraries.FOLDERS, ""));
      return Optional.ofNullable(folders.get(library))
          .map(folder -> new SearchFolder(Source.CHOSEN, folder));
    } catch (IllegalArgumentException e) {
      return Optional.empty();
    }
  }

  /// Existing folders that cannot be listed, each with the reason.
  List<String> unreadable() {
    return List.copyOf(unreadable);
  }

  private void toolkits() {
    for (String variable : List.of("CUDA_HOME", "CUDA_PATH")) {
      var home = folder(variable);
      if (home != null) {
        toolkit(home);
      }
    }
    children(root.resolve("usr/local"), "cuda*").forEach(this::toolkit);
  }

  private void toolkit(Path home) {
    add(Source.TOOLKIT, home.resolve("lib64"));
    children(home.resolve("targets"), "*")
        .forEach(target -> add(Source.TOOLKIT, target.resolve("lib")));
    add(Source.TOOLKIT, home.resolve("extras/CUPTI/lib64"));
  }

  /// Adds the package folders of the python3 on the path, of environments in the usual places, and
  /// of the system. They are searched directly, because starting Python would be slower than
  /// everything else.
  private void python() {
    var prefixes = new LinkedHashSet<Path>();
    for (String variable : List.of("VIRTUAL_ENV", "CONDA_PREFIX")) {
      var prefix = folder(variable);
      if (prefix != null) {
        prefixes.add(prefix);
      }
    }
    for (String folder : list("PATH")) {
      var python = Path.of(folder, "python3");
      if (Files.isExecutable(python)) {
        addPrefix(prefixes, python);
        addPrefix(prefixes, real(python));
        break;
      }
    }
    var home = folder("HOME");
    if (home != null) {
      prefixes.addAll(List.of(home.resolve(".venv"), home.resolve("venv"), home.resolve(".local")));
      prefixes.addAll(children(home.resolve(".pyenv/versions"), "*"));
    }
    for (String usual : List.of("opt/venv", "opt/conda", "usr/local", "usr")) {
      prefixes.add(root.resolve(usual));
    }
    for (Path prefix : prefixes) {
      for (Path python : children(prefix.resolve("lib"), "python3*")) {
        for (String packages : List.of("site-packages", "dist-packages")) {
          children(python.resolve(packages).resolve("nvidia"), "*")
              .forEach(one -> add(Source.PYTHON, one.resolve("lib")));
        }
      }
    }
  }

  private static void addPrefix(SequencedSet<Path> prefixes, Path python) {
    var bin = python.getParent();
    var prefix = bin == null ? null : bin.getParent();
    if (prefix != null) {
      prefixes.add(prefix);
    }
  }

  private void libraryPath() {
    list("LD_LIBRARY_PATH").forEach(folder -> add(Source.LIBRARY_PATH, Path.of(folder)));
  }

  private void loader() {
    configured(root.resolve("etc/ld.so.conf"));
    children(root.resolve("etc/ld.so.conf.d"), "*.conf").forEach(this::configured);
    for (String usual :
        List.of(
            "lib/x86_64-linux-gnu",
            "usr/lib/x86_64-linux-gnu",
            "lib/aarch64-linux-gnu",
            "usr/lib/aarch64-linux-gnu",
            "lib64",
            "usr/lib64",
            "lib",
            "usr/lib",
            "usr/lib/wsl/lib")) {
      add(Source.LOADER, root.resolve(usual));
    }
  }

  private void configured(Path file) {
    if (!Files.isRegularFile(file)) {
      return;
    }
    try {
      for (String line : Files.readAllLines(file)) {
        if (line.startsWith("/")) {
          add(Source.LOADER, root.resolve(line.strip().substring(1)));
        }
      }
    } catch (IOException e) {
      unreadable.add("%s cannot be read (%s)".formatted(file, e.getClass().getSimpleName()));
    }
  }

  private void add(Source source, Path folder) {
    if (Files.isDirectory(folder)) {
      found.add(new SearchFolder(source, folder));
    }
  }

  private List<Path> children(Path folder, String pattern) {
    if (!Files.isDirectory(folder)) {
      return List.of();
    }
    var children = new ArrayList<Path>();
    try (var stream = Files.newDirectoryStream(folder, pattern)) {
      stream.forEach(children::add);
    } catch (IOException | DirectoryIteratorException e) {
      unreadable.add("%s cannot be read (%s)".formatted(folder, e.getClass().getSimpleName()));
    }
    children.sort(null);
    return children;
  }

  static Path real(Path path) {
    try {
      return path.toRealPath();
    } catch (IOException e) {
      return path; // a dangling link; opening it reports why
    }
  }

  private @Nullable Path folder(String variable) {
    var value = environment.getOrDefault(variable, "");
    return value.startsWith("/") ? Path.of(value) : null;
  }

  /// Lists the absolute folders of a variable. Relative ones would depend on a rank's working
  /// directory.
  private List<String> list(String variable) {
    var folders = new ArrayList<String>();
    for (String folder : environment.getOrDefault(variable, "").split(":", -1)) {
      if (folder.startsWith("/")) {
        folders.add(folder);
      }
    }
    return folders;
  }
}
