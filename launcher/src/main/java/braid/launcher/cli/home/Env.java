package braid.launcher.cli.home;

import braid.launcher.machine.RankCount;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.regex.Pattern;

/// The environment that the `braid` command was started in. Nothing else of it reads a variable.
public record Env(Map<String, String> variables) {
  /// Ranks to start, where the command line does not say.
  private static final String RANKS = "BRAID_RANKS";

  private static final Pattern MATTERS =
      Pattern.compile(
          "(BRAID|CUDA|NCCL|NVSHMEM|CUBLAS|CUBLASLT|NVIDIA|OMP|OPENBLAS|GOTO|KMP|MALLOC)_.*"
              + "|LD_LIBRARY_PATH|LD_PRELOAD|JAVA_HOME|VIRTUAL_ENV|CONDA_PREFIX");

  private static final Pattern SECRET =
      Pattern.compile("TOKEN|SECRET|PASSW|CREDENTIAL|KEY|AUTH", Pattern.CASE_INSENSITIVE);

  public Env {
    variables = Map.copyOf(variables);
  }

  public static Env here() {
    return new Env(System.getenv());
  }

  /// A variable that is set to nothing counts as not set.
  private Optional<String> get(String name) {
    return Optional.ofNullable(variables.get(name)).filter(value -> !value.isBlank());
  }

  public Optional<String> ranks() {
    return get(RANKS);
  }

  /// The process that started this one as a kernel, as Jupyter tells its kernels.
  public Optional<ProcessHandle> jupyter() {
    return get("JPY_PARENT_PID")
        .filter(text -> text.matches("[1-9][0-9]{0,17}"))
        .flatMap(pid -> ProcessHandle.of(Long.parseLong(pid)));
  }

  /// `auto`, `host` or `cuda`, where the command line does not say.
  public Optional<String> backend() {
    return get("BRAID_BACKEND");
  }

  /// What CUDA is to show of the GPUs. Set to nothing, it shows none.
  private Optional<String> visibleDevices() {
    return Optional.ofNullable(variables.get("CUDA_VISIBLE_DEVICES"));
  }

  /// What ranks that are started from here can run on.
  public RankCount machine() {
    return RankCount.here(visibleDevices());
  }

  /// The host backend's link, where the command line does not say.
  public Optional<String> link() {
    return get("BRAID_LINK");
  }

  /// Where ranks keep compiled kernels and chosen algorithms.
  public Path cache() {
    return get("BRAID_CACHE")
        .map(text -> Path.of(text).toAbsolutePath())
        .orElse(braid.internal.rank.Env.DEFAULT_CACHE);
  }

  public Path userHome() {
    return get("HOME").map(Path::of).orElse(Path.of(System.getProperty("user.home", "/")));
  }

  public Optional<Path> jupyterDataDirectory() {
    return get("JUPYTER_DATA_DIR").map(Path::of);
  }

  public Optional<Path> xdgDataHome() {
    return get("XDG_DATA_HOME").map(Path::of);
  }

  public List<Path> jupyterPath() {
    return paths("JUPYTER_PATH");
  }

  /// The variables that may change what is measured, by name: these families and these names, and
  /// of them none that could be a secret.
  public SortedMap<String, String> thatMatter() {
    var kept = new TreeMap<String, String>();
    variables.forEach(
        (name, value) -> {
          if (MATTERS.matcher(name).matches() && !SECRET.matcher(name).find()) {
            kept.put(name, value);
          }
        });
    return kept;
  }

  public int columns() {
    return get("COLUMNS")
        .filter(text -> text.matches("[1-9][0-9]{0,3}"))
        .map(Integer::parseInt)
        .orElse(80);
  }

  /// The program of that name that a shell would start.
  public Optional<Path> program(String name) {
    return paths("PATH").stream()
        .map(directory -> directory.resolve(name))
        .filter(file -> Files.isRegularFile(file) && Files.isExecutable(file))
        .findFirst();
  }

  private List<Path> paths(String name) {
    return get(name).stream()
        .flatMap(list -> Arrays.stream(list.split(File.pathSeparator)))
        .filter(entry -> !entry.isBlank())
        .map(Path::of)
        .toList();
  }
}
