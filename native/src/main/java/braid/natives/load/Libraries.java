package braid.natives.load;

import braid.natives.JavaCpp;
import braid.natives.LibC;
import java.io.IOException;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;
import org.bytedeco.javacpp.Loader;

/// NVIDIA's libraries and UCX, each found and loaded once per process, at its first use. The newest
/// copy wins; of equal versions the first in this order: CUDA toolkit, Python packages,
/// `LD_LIBRARY_PATH`, the dynamic loader's folders, the redist jar. A folder of [#FOLDERS] is
/// searched alone.
///
/// A chosen copy is opened before JavaCPP's bindings, which depend on its soname and so get this
/// copy. JavaCPP is also informed that it is loaded, so that it searches no other.
public final class Libraries {
  /// Variable with names of libraries to run without, as if they were not installed.
  public static final String WITHOUT = "BRAID_WITHOUT";

  /// Variable with folders in which alone a library is searched: `nccl=/opt/nccl/lib`.
  public static final String FOLDERS = "BRAID_LIBRARIES";

  private static final Map<Library, Outcome> OUTCOMES = new EnumMap<>(Library.class);

  /// JavaCPP's only name for these builtins, whatever their minor version.
  private static final String NVRTC_BUILTINS_KEY = "nvrtc-builtins@.13.1";

  private Libraries() {}

  /// A library and how to get it. `files` are the sonames that JavaCPP's bindings need; `keys` are
  /// JavaCPP's names for them.
  @SuppressWarnings("ImmutableEnumChecker") // the lists are immutable
  public enum Library {
    CUDA_DRIVER(
        "the NVIDIA driver's library",
        List.of("libcuda.so.1"),
        List.of(),
        List.of(),
        "install NVIDIA's driver, or start the container with the host's GPUs"),
    CUDA_RUNTIME(
        "the CUDA runtime",
        List.of("libcudart.so.13"),
        List.of("cudart@.13"),
        List.of(),
        "install a CUDA 13 toolkit, or pip install nvidia-cuda-runtime"),
    CUBLAS_LT(
        "cuBLASLt",
        List.of("libcublasLt.so.13", "libcublas.so.13"),
        List.of("cublasLt@.13", "cublas@.13"),
        List.of(),
        "install a CUDA 13 toolkit, or pip install nvidia-cublas"),
    NVRTC(
        "NVRTC",
        List.of("libnvrtc.so.13"),
        List.of("nvrtc@.13"),
        IntStream.range(0, 10).mapToObj("libnvrtc-builtins.so.13.%d"::formatted).toList(),
        "install a CUDA 13 toolkit, or pip install nvidia-cuda-nvrtc"),
    NCCL(
        "NCCL",
        List.of("libnccl.so.2"),
        List.of("nccl@.2"),
        List.of(),
        "install libnccl2, or pip install nvidia-nccl-cu13"),
    CUPTI(
        "CUPTI",
        List.of("libcupti.so.13"),
        List.of("cupti@.13"),
        List.of(),
        "install a CUDA 13 toolkit, or pip install nvidia-cuda-cupti"),
    /// cuDNN's parts open each other by name, so all of one copy are loaded. JavaCPP's bindings
    /// need those for which Braid has no use, too.
    CUDNN(
        "cuDNN",
        List.of(
            "libcudnn.so.9",
            "libcudnn_graph.so.9",
            "libcudnn_engines_precompiled.so.9",
            "libcudnn_engines_runtime_compiled.so.9",
            "libcudnn_heuristic.so.9",
            "libcudnn_ops.so.9",
            "libcudnn_adv.so.9",
            "libcudnn_cnn.so.9"),
        List.of(
            "cudnn@.9",
            "cudnn_graph@.9",
            "cudnn_engines_precompiled@.9",
            "cudnn_engines_runtime_compiled@.9",
            "cudnn_heuristic@.9",
            "cudnn_ops@.9",
            "cudnn_adv@.9",
            "cudnn_cnn@.9"),
        List.of(),
        "install cuDNN 9, or pip install nvidia-cudnn-cu13"),
    NVML(
        "NVML",
        List.of("libnvidia-ml.so.1"),
        List.of(),
        List.of(),
        "install NVIDIA's driver, or start the container with the host's GPUs"),
    NVSHMEM(
        "NVSHMEM",
        List.of("libnvshmem_host.so.3"),
        List.of(),
        List.of("nvshmem_bootstrap_uid.so.3"),
        "install NVSHMEM 3, or pip install nvidia-nvshmem-cu13"),
    CUBLAS_MP(
        "cuBLASMp",
        List.of("libcublasmp.so.0"),
        List.of(),
        List.of(),
        "pip install -U nvidia-cublasmp-cu13"),
    NVTX(
        "NVTX",
        List.of("libnvtx3interop.so.1"),
        List.of(),
        List.of(),
        "install a CUDA 13 toolkit, or pip install nvidia-nvtx"),
    /// The equivalent library of CUDA 12.
    NVTX_2(
        "NVTX 2",
        List.of("libnvToolsExt.so.1"),
        List.of(),
        List.of(),
        "install a CUDA 13 toolkit, or pip install nvidia-nvtx"),
    UCX(
        "UCX",
        List.of("libucp.so.0"),
        List.of(),
        List.of(),
        "install libucx0 (Debian, Ubuntu) or ucx (Fedora, RHEL)");

    private final String title;
    private final List<String> files;
    private final List<String> keys;
    private final List<String> companions;
    private final String remedy;

    Library(
        String title,
        List<String> files,
        List<String> keys,
        List<String> companions,
        String remedy) {
      this.title = title;
      this.files = files;
      this.keys = keys;
      this.companions = companions;
      this.remedy = remedy;
    }

    List<String> files() {
      return files;
    }

    public String title() {
      return title;
    }

    /// Files that must be in the same folder because the library opens them by name.
    List<String> companions() {
      return companions;
    }

    /// Returns true for a driver library. It must match the kernel module: the dynamic loader finds
    /// the right one, and a newer one is no better.
    boolean belongsToDriver() {
      return this == CUDA_DRIVER || this == NVML;
    }

    /// Returns true if ranks run without it, so that it can be hidden.
    public boolean isOptional() {
      return switch (this) {
        case NCCL, CUPTI, CUDNN, NVSHMEM, CUBLAS_MP, UCX -> true;
        case CUDA_DRIVER, CUDA_RUNTIME, CUBLAS_LT, NVRTC, NVML, NVTX, NVTX_2 -> false;
      };
    }

    /// Returns true if the user may choose the folder of its copy.
    public boolean canBeChosen() {
      return !belongsToDriver();
    }

    /// Returns the library of that name, in any case: `nccl`.
    public static Optional<Library> named(String name) {
      return Arrays.stream(values()).filter(each -> each.name().equalsIgnoreCase(name)).findFirst();
    }

    /// Returns how to get it: `pip install -U nvidia-cublasmp-cu13`.
    public String remedy() {
      return remedy;
    }

    /// Returns the name in variables.
    public String word() {
      return name().toLowerCase(Locale.ROOT);
    }

    /// Returns true if it needs neither the CUDA runtime nor JavaCPP, so that a rank without a GPU
    /// can load it.
    boolean standsAlone() {
      return this == NVML || this == NVTX || this == NVTX_2 || this == UCX;
    }
  }

  private record Outcome(Optional<FoundLibrary> found, String error) {}

  /// Returns the library, loaded; throws one line with the searched places and a remedy.
  public static FoundLibrary require(Library library) {
    var outcome = outcome(library);
    return outcome.found.orElseThrow(() -> new BraidNativeMissing(outcome.error));
  }

  /// Returns the library, loaded, if it is available. Never throws.
  public static Optional<FoundLibrary> find(Library library) {
    return outcome(library).found;
  }

  /// Returns why the library is treated as missing; empty if [#WITHOUT] does not name it. Loads
  /// nothing.
  public static Optional<String> hidden(Library library) {
    return LibrarySearch.hidden(library, SearchFolders.without());
  }

  /// Returns the libraries that a value of [#WITHOUT] names.
  ///
  /// @throws IllegalArgumentException with one line if it names one that ranks need, or none
  public static Set<Library> without(String names) {
    return LibrarySearch.without(names);
  }

  /// Checks a value of [#FOLDERS].
  ///
  /// @throws IllegalArgumentException with one line if it has another form
  public static void checkFolders(String value) {
    LibrarySearch.folders(value);
  }

  /// Returns in a few words why the library is not available; empty if it is.
  public static Optional<String> missing(Library library) {
    return find(library).isPresent()
        ? Optional.empty()
        : hidden(library)
            .or(
                () ->
                    Optional.of(
                        "%s was not found on this machine"
                            .formatted(String.join(" and ", library.files))));
  }

  /// Describes the copy that [#find] would try first, with the version of its file name. Loads
  /// nothing.
  public static Optional<String> foreseen(Library library) {
    return foreseen(library, Map.of());
  }

  /// Describes the copy that [#find] would try first in a process with other variables.
  ///
  /// @param variables variables that replace those of this process
  public static Optional<String> foreseen(Library library, Map<String, String> variables) {
    if (library.belongsToDriver() || hidden(library).isPresent()) {
      return Optional.empty();
    }
    var places = SearchFolders.ofThisMachine(variables);
    var search = LibrarySearch.in(places, library, RedistJar.of(library));
    return search.isEmpty() ? Optional.empty() : Optional.of(search.take().text());
  }

  private static synchronized Outcome outcome(Library library) {
    var known = OUTCOMES.get(library);
    if (known != null) {
      return known;
    }
    if (!library.belongsToDriver() && !library.standsAlone() && library != Library.CUDA_RUNTIME) {
      // JavaCPP loads the runtime with each of these, so ours must be loaded first.
      outcome(Library.CUDA_RUNTIME);
    }
    if (library == Library.CUDNN) {
      // JavaCPP loads cuBLAS with cuDNN; cuDNN itself opens NVRTC.
      outcome(Library.CUBLAS_LT);
      outcome(Library.NVRTC);
    }
    if (library == Library.CUBLAS_MP) {
      // It depends on both by soname, and so gets the copies that are used here.
      outcome(Library.NCCL);
      outcome(Library.CUBLAS_LT);
    }
    var outcome = loadBest(library);
    OUTCOMES.put(library, outcome);
    return outcome;
  }

  private static Outcome loadBest(Library library) {
    if (library == Library.UCX) {
      quietUcx();
    }
    var hidden = hidden(library);
    if (hidden.isPresent()) {
      return new Outcome(
          Optional.empty(), "%s; change or unset %s".formatted(hidden.get(), WITHOUT));
    }
    if (!library.standsAlone()) {
      try {
        JavaCpp.prepare();
      } catch (UnsatisfiedLinkError e) {
        return new Outcome(Optional.empty(), library.title + " cannot be loaded: " + oneLine(e));
      }
    }
    return library.belongsToDriver()
        ? byName(library)
        : choose(library, SearchFolders.ofThisMachine());
  }

  /// Sets variables that UCX reads when it is loaded. Its handlers of error signals would replace
  /// those of the JVM, which uses them for its own purposes, and its hooks would rewrite `mmap` and
  /// `munmap` in a process that runs.
  private static void quietUcx() {
    LibC.setVariable("UCX_ERROR_SIGNALS", "", true);
    LibC.setVariable("UCX_HANDLE_ERRORS", "none", true);
    LibC.setVariable("UCX_MEM_EVENTS", "n", false);
    LibC.setVariable("UCX_WARN_UNUSED_ENV_VARS", "n", false);
    LibC.setVariable("UCX_LOG_LEVEL", "fatal", false);
  }

  private static Outcome choose(Library library, SearchFolders places) {
    var search = LibrarySearch.in(places, library, RedistJar.of(library));
    var passedOver = new ArrayList<String>();
    while (!search.isEmpty()) {
      var candidate = search.take();
      try {
        var taken =
            candidate.source() == SearchFolder.Source.REDIST
                ? RedistJar.unpack(library, candidate)
                : candidate;
        var version = load(library, taken, passedOver);
        var reason = search.why(taken);
        passedOver.addAll(search.rest());
        passedOver.addAll(places.unreadable());
        return found(new FoundLibrary(library.title, taken.file(), version, reason, passedOver));
      } catch (UnsatisfiedLinkError | IOException e) {
        passedOver.add("%s: %s".formatted(candidate.text(), oneLine(e)));
      }
    }
    var searched =
        places
            .chosen(library)
            .map(chosen -> "%s, by %s".formatted(chosen.folder(), FOLDERS))
            .orElseGet(LibrarySearch::where);
    return missing(library, searched, passedOver);
  }

  private static Outcome byName(Library library) {
    var name = library.files.getFirst();
    try {
      DynamicLibrary.open(name);
    } catch (UnsatisfiedLinkError e) {
      return missing(
          library, "LD_LIBRARY_PATH and the dynamic loader's folders", List.of(oneLine(e)));
    }
    var path = MappedFiles.file(name);
    return found(
        new FoundLibrary(
            library.title,
            path.orElse(Path.of(name)),
            path.flatMap(file -> FileVersion.version(library, file))
                .map(Version::text)
                .orElse("unknown"),
            "found by the dynamic loader by name",
            List.of()));
  }

  private static String load(Library library, Candidate candidate, List<String> notes)
      throws IOException {
    var opened = new ArrayList<DynamicLibrary>();
    for (Path file : candidate.files()) {
      opened.add(DynamicLibrary.open(file.toString()));
    }
    for (int i = 0; i < library.keys.size(); i++) {
      registerWithJavaCpp(candidate.files().get(i), library.keys.get(i));
    }
    companions(library, candidate, notes);
    return LibraryVersions.version(library, opened.getFirst())
        .or(() -> candidate.version().map(Version::text))
        .orElse("unknown");
  }

  private static void registerWithJavaCpp(Path file, String key) throws IOException {
    var url = file.toAbsolutePath().toUri().toURL();
    Loader.loadLibrary(Loader.class, new URL[] {url}, key);
  }

  /// Opens files that a library opens by bare name, here by path, so that the name is already
  /// loaded.
  private static void companions(Library library, Candidate candidate, List<String> notes)
      throws IOException {
    for (String name : library.companions) {
      var file = candidate.file().resolveSibling(name);
      if (Files.isRegularFile(file)) {
        try {
          DynamicLibrary.open(file.toString());
          if (library == Library.NVRTC) {
            registerWithJavaCpp(file, NVRTC_BUILTINS_KEY);
          }
        } catch (UnsatisfiedLinkError e) {
          notes.add("%s in the same folder: %s".formatted(name, oneLine(e)));
        }
      }
    }
  }

  private static Outcome found(FoundLibrary library) {
    return new Outcome(Optional.of(library), "");
  }

  private static Outcome missing(Library library, String place, List<String> reasons) {
    return new Outcome(
        Optional.empty(),
        "%s (%s) was not found in %s%s; %s"
            .formatted(
                library.title,
                String.join(" and ", library.files),
                place,
                reasons.isEmpty() ? "" : " (%s)".formatted(String.join("; ", reasons)),
                library.remedy));
  }

  private static String oneLine(Throwable e) {
    return String.valueOf(e.getMessage()).lines().findFirst().orElse(e.toString());
  }
}
