package braid.launcher.cli.doctor;

import braid.launcher.machine.Gpus;
import braid.natives.BlasBuild;
import braid.natives.load.BraidNativeMissing;
import braid.natives.load.FoundLibrary;
import braid.natives.load.Libraries;
import braid.natives.load.Libraries.Library;
import braid.natives.profiling.NvtxRange;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/// Checks of the native libraries: OpenBLAS, which Braid ships, and NVIDIA's, each found, chosen
/// and loaded as a rank does it.
final class LibraryChecks {
  /// @param needed true if every rank on a GPU needs it
  private record LibraryCheck(String id, String title, boolean needed) {}

  private static final Map<Library, LibraryCheck> OF_GPUS =
      new EnumMap<>(
          Map.of(
              Library.CUDA_DRIVER, new LibraryCheck("cuda_driver", "CUDA driver", true),
              Library.CUDA_RUNTIME, new LibraryCheck("cuda_runtime", "CUDA runtime", true),
              Library.CUBLAS_LT, new LibraryCheck("cublas_lt", "cuBLASLt", true),
              Library.CUDNN, new LibraryCheck("cudnn", "cuDNN", false),
              Library.NVRTC, new LibraryCheck("nvrtc", "NVRTC", true),
              Library.NCCL, new LibraryCheck("nccl", "NCCL", false),
              Library.CUPTI, new LibraryCheck("cupti", "CUPTI", false),
              Library.NVML, new LibraryCheck("nvml", "NVML", false),
              Library.NVSHMEM, new LibraryCheck("nvshmem", "NVSHMEM", false),
              Library.CUBLAS_MP, new LibraryCheck("cublas_mp", "cuBLASMp", false)));

  private LibraryChecks() {}

  static List<Check> all(Gpus gpus) {
    var checks = new ArrayList<Check>();
    checks.add(openBlas());
    OF_GPUS.forEach((library, wanted) -> checks.add(check(library, wanted, gpus)));
    checks.add(ucx());
    checks.add(ranges());
    return checks;
  }

  /// Check of the library that moves bytes between the memories of several hosts.
  private static Check ucx() {
    var title = "UCX";
    try {
      return Check.ok("ucx", title, words(Libraries.require(Library.UCX)));
    } catch (BraidNativeMissing e) {
      var line = String.valueOf(e.getMessage());
      return Check.absent("ucx", title, why(line), remedy(line));
    }
  }

  /// Check of ranges for other profilers, which ranks push on every backend.
  private static Check ranges() {
    var title = "NVTX ranges";
    return NvtxRange.library()
        .map(by -> Check.ok("nvtx", title, "pushed by %s %s".formatted(by.name(), words(by))))
        .orElseGet(
            () -> {
              var line = NvtxRange.missing().orElseThrow();
              return Check.absent("nvtx", title, "not pushed: " + why(line), remedy(line));
            });
  }

  private static Check openBlas() {
    try {
      var build = BlasBuild.load();
      return Check.ok("openblas", "OpenBLAS", build.config() + ", threads " + build.threads());
    } catch (LinkageError e) {
      var line = String.valueOf(e.getMessage()).lines().findFirst().orElse("" + e);
      int remedy = line.lastIndexOf("; ");
      return Check.missing(
          "openblas",
          "OpenBLAS",
          "cannot be loaded: " + (remedy < 0 ? line : line.substring(0, remedy)),
          remedy < 0 ? "build again: mvn -DskipTests package" : line.substring(remedy + 2));
    }
  }

  /// Checks a library. Some take hundreds of megabytes when loaded, so none is loaded without a
  /// GPU.
  private static Check check(Library library, LibraryCheck wanted, Gpus gpus) {
    var hidden = Libraries.hidden(library);
    if (hidden.isPresent()) {
      return Check.absent(
          wanted.id, wanted.title, hidden.get(), "change or unset " + Libraries.WITHOUT);
    }
    if (gpus.count() == 0) {
      return Check.absent(wanted.id, wanted.title, "not checked: no GPU");
    }
    try {
      return Check.ok(wanted.id, wanted.title, words(Libraries.require(library)));
    } catch (BraidNativeMissing e) {
      var line = String.valueOf(e.getMessage());
      return wanted.needed
          ? Check.missing(wanted.id, wanted.title, why(line), remedy(line))
          : Check.absent(wanted.id, wanted.title, why(line), remedy(line));
    }
  }

  private static String why(String line) {
    int remedy = line.lastIndexOf("; ");
    return remedy < 0 ? line : line.substring(0, remedy);
  }

  private static String remedy(String line) {
    int remedy = line.lastIndexOf("; ");
    return remedy < 0 ? "braid doctor --json" : line.substring(remedy + 2);
  }

  /// Describes a library: "2.28.9, /opt/…/libnccl.so.2: the newest of 2, in …; passed over: …".
  static String words(FoundLibrary found) {
    var chosen = "%s, %s: %s".formatted(found.version(), found.path(), found.reason());
    return found.passedOver().isEmpty()
        ? chosen
        : "%s; passed over: %s".formatted(chosen, String.join(", ", found.passedOver()));
  }
}
