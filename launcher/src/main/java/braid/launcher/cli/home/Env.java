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

/// Environment of the `braid` command. No other class of the launcher reads a variable.
public record Env(Map<String, String> variables) {
  /// Default number of ranks.
  private static final String RANKS = "BRAID_RANKS";

  private static final Pattern MATTERS =
      Pattern.compile(
          "(BRAID|CUDA|NCCL|NVSHMEM|CUBLAS|CUBLASLT|CUBLASMP|NVIDIA|OMP|OPENBLAS|GOTO|KMP|MALLOC)_.*"
              + "|LD_LIBRARY_PATH|LD_PRELOAD|JAVA_HOME|VIRTUAL_ENV|CONDA_PREFIX");

  private static final Pattern SECRET =
      Pattern.compile(
          "TOKEN|SECRET|PASSW|CREDENTIAL|KEY|AUTH|BRAID_JOIN", Pattern.CASE_INSENSITIVE);

  private static final Pattern OF_ONE_HOST =
      Pattern.compile("BRAID_(RANK|RANKS|HOST|CACHE|LIBRARIES|JAVA_HOME|SCREENSHOTS)");

  public Env {
    variables = Map.copyOf(variables);
  }

  public static Env here() {
    return new Env(System.getenv());
  }

  /// Value of a variable; blank counts as unset.
  private Optional<String> get(String name) {
    return Optional.ofNullable(variables.get(name)).filter(value -> !value.isBlank());
  }

  public Optional<String> ranks() {
    return get(RANKS);
  }

  /// Address and secret by which ranks join, if they are given ahead.
  public Optional<String> join() {
    return get("BRAID_JOIN");
  }

  /// Returns variables of Braid that ranks on other hosts get too: without those that name a place,
  /// a file or a secret.
  public SortedMap<String, String> forHosts() {
    var kept = new TreeMap<String, String>();
    variables.forEach(
        (name, value) -> {
          if (name.startsWith("BRAID_")
              && !OF_ONE_HOST.matcher(name).matches()
              && !SECRET.matcher(name).find()) {
            kept.put(name, value);
          }
        });
    return kept;
  }

  /// Number of tasks of this process's allocation by Slurm.
  public Optional<String> slurmTasks() {
    return get("SLURM_NTASKS");
  }

  /// Number of hosts of this process's allocation by Slurm; empty without one.
  public Optional<String> slurmHosts() {
    return get("SLURM_JOB_NUM_NODES");
  }

  /// Jupyter's process, which sets this variable for its kernels.
  public Optional<ProcessHandle> jupyter() {
    return get("JPY_PARENT_PID")
        .filter(text -> text.matches("[1-9][0-9]{0,17}"))
        .flatMap(pid -> ProcessHandle.of(Long.parseLong(pid)));
  }

  /// Default backend: `auto`, `host` or `cuda`.
  public Optional<String> backend() {
    return get("BRAID_BACKEND");
  }

  /// Name of the variable by which ranks may share GPUs, if it is on.
  public Optional<String> sharing() {
    return braid.internal.rank.Env.sharesGpus(variables)
        ? Optional.of(braid.internal.rank.Env.SHARE_GPUS)
        : Optional.empty();
  }

  /// Code that computes attention on GPUs: `auto`, `cudnn` or `own`.
  public Optional<String> attention() {
    return get("BRAID_ATTENTION");
  }

  /// GPUs that CUDA shows. Set to the empty string, it shows none.
  private Optional<String> visibleDevices() {
    return Optional.ofNullable(variables.get("CUDA_VISIBLE_DEVICES"));
  }

  /// Resources for ranks that are started from here.
  public RankCount machine() {
    return RankCount.here(visibleDevices());
  }

  /// Default link of the host backend.
  public Optional<String> link() {
    return get("BRAID_LINK");
  }

  /// Cache folder of ranks, for compiled kernels and chosen algorithms.
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

  public Optional<Path> jupyterRuntimeDirectory() {
    return get("JUPYTER_RUNTIME_DIR").map(Path::of);
  }

  public Optional<Path> xdgDataHome() {
    return get("XDG_DATA_HOME").map(Path::of);
  }

  public List<Path> jupyterPath() {
    return paths("JUPYTER_PATH");
  }

  /// Returns variables that may change measurements, by name: these families and names, without any
  /// that may be a secret.
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

  /// Returns the program that a shell would start for this name.
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
