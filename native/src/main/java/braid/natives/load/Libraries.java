package braid.natives.load;

import braid.natives.JavaCpp;
import java.io.IOException;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;
import org.bytedeco.javacpp.Loader;

/// NVIDIA's libraries, each found, chosen and loaded once in a process, at the first question for
/// it. The newest copy is taken; of equals the first of: the CUDA toolkit, Python's packages,
/// `LD_LIBRARY_PATH`, the dynamic loader's folders, the redist jar.
///
/// A chosen copy is opened for the whole process before JavaCPP's own library is, which needs it by
/// its soname and so gets it; and JavaCPP is told that it is loaded, so that it looks for no other.
public final class Libraries {
  private static final Map<Library, Outcome> OUTCOMES = new EnumMap<>(Library.class);

  /// Whatever the minor version is: JavaCPP knows one name only.
  private static final String NVRTC_BUILTINS_KEY = "nvrtc-builtins@.13.1";

  private Libraries() {}

  /// A library, or what it takes to get one. The files are what JavaCPP's libraries need, to the
  /// soname; `keys` is how JavaCPP calls each.
  @SuppressWarnings("ImmutableEnumChecker") // the lists are
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
    NVTX(
        "NVTX",
        List.of("libnvtx3interop.so.1"),
        List.of(),
        List.of(),
        "install a CUDA 13 toolkit, or pip install nvidia-nvtx"),
    /// The library of CUDA 12 with the same functions.
    NVTX_2(
        "NVTX 2",
        List.of("libnvToolsExt.so.1"),
        List.of(),
        List.of(),
        "install a CUDA 13 toolkit, or pip install nvidia-nvtx");

    private final String title;
    private final List<String> files;
    private final List<String> keys;
    private final List<String> beside;
    private final String remedy;

    Library(
        String title, List<String> files, List<String> keys, List<String> beside, String remedy) {
      this.title = title;
      this.files = files;
      this.keys = keys;
      this.beside = beside;
      this.remedy = remedy;
    }

    List<String> files() {
      return files;
    }

    /// What must lie in the same folder because the library itself opens it by name.
    List<String> beside() {
      return beside;
    }

    /// The driver's libraries belong to the kernel's module: the dynamic loader knows which, and a
    /// newer one is no better.
    boolean isTheLoaders() {
      return this == CUDA_DRIVER || this == NVML;
    }

    /// Needs neither the CUDA runtime nor JavaCPP, so that a rank without a GPU can load it.
    boolean standsAlone() {
      return this == NVML || this == NVTX || this == NVTX_2;
    }
  }

  private record Outcome(Optional<FoundLibrary> found, String complaint) {}

  /// The library, loaded; or one line that says where was looked and what helps.
  public static FoundLibrary require(Library which) {
    var outcome = outcome(which);
    return outcome.found.orElseThrow(() -> new BraidNativeMissing(outcome.complaint));
  }

  /// The library, loaded, if there is one. Never throws.
  public static Optional<FoundLibrary> find(Library which) {
    return outcome(which).found;
  }

  /// The copy that [#find] would try first and its version, as its file's name has it; nothing is
  /// loaded, for a process that only wants to know.
  public static Optional<String> foreseen(Library which) {
    if (which.isTheLoaders()) {
      return Optional.empty();
    }
    var search = Search.in(Places.ofThisMachine(), which, Redist.of(which));
    return search.isEmpty() ? Optional.empty() : Optional.of(search.take().text());
  }

  private static synchronized Outcome outcome(Library which) {
    var known = OUTCOMES.get(which);
    if (known != null) {
      return known;
    }
    if (!which.isTheLoaders() && !which.standsAlone() && which != Library.CUDA_RUNTIME) {
      // JavaCPP asks for the runtime beside each of these: ours is to be there before it looks.
      outcome(Library.CUDA_RUNTIME);
    }
    var outcome = look(which);
    OUTCOMES.put(which, outcome);
    return outcome;
  }

  private static Outcome look(Library which) {
    if (!which.standsAlone()) {
      try {
        JavaCpp.prepare();
      } catch (UnsatisfiedLinkError e) {
        return new Outcome(Optional.empty(), which.title + " cannot be loaded: " + oneLine(e));
      }
    }
    return which.isTheLoaders() ? byName(which) : choose(which, Places.ofThisMachine());
  }

  private static Outcome choose(Library which, Places places) {
    var search = Search.in(places, which, Redist.of(which));
    var passedOver = new ArrayList<String>();
    while (!search.isEmpty()) {
      var candidate = search.take();
      try {
        var taken =
            candidate.kind() == SearchFolder.Kind.REDIST
                ? Redist.unpack(which, candidate)
                : candidate;
        var version = load(which, taken, passedOver);
        var why = search.why(taken);
        passedOver.addAll(search.rest());
        passedOver.addAll(places.unreadable());
        return found(new FoundLibrary(which.title, taken.file(), version, why, passedOver));
      } catch (UnsatisfiedLinkError | IOException e) {
        passedOver.add("%s: %s".formatted(candidate.text(), oneLine(e)));
      }
    }
    return missing(which, Search.where(), passedOver);
  }

  private static Outcome byName(Library which) {
    var name = which.files.getFirst();
    try {
      Dl.open(name);
    } catch (UnsatisfiedLinkError e) {
      return missing(
          which, "LD_LIBRARY_PATH and the dynamic loader's folders", List.of(oneLine(e)));
    }
    var path = Mapped.file(name);
    return found(
        new FoundLibrary(
            which.title,
            path.orElse(Path.of(name)),
            path.flatMap(file -> Named.version(which, file)).map(Version::text).orElse("unknown"),
            "the one that the dynamic loader finds by its name",
            List.of()));
  }

  private static String load(Library which, Candidate candidate, List<String> notes)
      throws IOException {
    var opened = new ArrayList<Dl>();
    for (Path file : candidate.files()) {
      opened.add(Dl.open(file.toString()));
    }
    for (int i = 0; i < which.keys.size(); i++) {
      tellJavaCpp(candidate.files().get(i), which.keys.get(i));
    }
    beside(which, candidate, notes);
    return LibraryVersions.version(which, opened.getFirst())
        .or(() -> candidate.version().map(Version::text))
        .orElse("unknown");
  }

  private static void tellJavaCpp(Path file, String key) throws IOException {
    var url = file.toAbsolutePath().toUri().toURL();
    Loader.loadLibrary(Loader.class, new URL[] {url}, key);
  }

  /// What a library opens by its bare name is opened here by its path, so that the name is known
  /// wherever a later search would go.
  private static void beside(Library which, Candidate candidate, List<String> notes)
      throws IOException {
    for (String name : which.beside) {
      var file = candidate.file().resolveSibling(name);
      if (Files.isRegularFile(file)) {
        try {
          Dl.open(file.toString());
          if (which == Library.NVRTC) {
            tellJavaCpp(file, NVRTC_BUILTINS_KEY);
          }
        } catch (UnsatisfiedLinkError e) {
          notes.add("%s beside it: %s".formatted(name, oneLine(e)));
        }
      }
    }
  }

  private static Outcome found(FoundLibrary library) {
    return new Outcome(Optional.of(library), "");
  }

  private static Outcome missing(Library which, String where, List<String> reasons) {
    return new Outcome(
        Optional.empty(),
        "%s (%s) was not found in %s%s; %s"
            .formatted(
                which.title,
                String.join(" and ", which.files),
                where,
                reasons.isEmpty() ? "" : " (%s)".formatted(String.join("; ", reasons)),
                which.remedy));
  }

  private static String oneLine(Throwable e) {
    return String.valueOf(e.getMessage()).lines().findFirst().orElse(e.toString());
  }
}
