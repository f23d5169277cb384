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

/// The native libraries: OpenBLAS, which Braid brings, and NVIDIA's, each found, chosen and loaded
/// as a rank does it.
final class LibraryChecks {
  /// @param needed by every rank on a GPU
  private record Wanted(String id, String title, boolean needed) {}

  private static final Map<Library, Wanted> OF_GPUS =
      new EnumMap<>(
          Map.of(
              Library.CUDA_DRIVER, new Wanted("cuda_driver", "CUDA driver", true),
              Library.CUDA_RUNTIME, new Wanted("cuda_runtime", "CUDA runtime", true),
              Library.CUBLAS_LT, new Wanted("cublas_lt", "cuBLASLt", true),
              Library.NVRTC, new Wanted("nvrtc", "NVRTC", true),
              Library.NCCL, new Wanted("nccl", "NCCL", false),
              Library.CUPTI, new Wanted("cupti", "CUPTI", false),
              Library.NVML, new Wanted("nvml", "NVML", false),
              Library.NVSHMEM, new Wanted("nvshmem", "NVSHMEM", false)));

  private LibraryChecks() {}

  static List<Check> all(Gpus gpus) {
    var checks = new ArrayList<Check>();
    checks.add(openBlas());
    OF_GPUS.forEach((library, wanted) -> checks.add(check(library, wanted, gpus)));
    checks.add(ranges());
    return checks;
  }

  /// Ranges of other profilers, which ranks push on every backend.
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

  /// Some of them take hundreds of megabytes when they are loaded, which helps nobody without a
  /// GPU.
  private static Check check(Library library, Wanted wanted, Gpus gpus) {
    if (gpus.count() == 0) {
      return Check.absent(wanted.id, wanted.title, "not looked for: no GPU");
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

  /// "2.28.9, /opt/…/libnccl.so.2: the newest of 2, in …; passed over: …".
  static String words(FoundLibrary found) {
    var chosen = "%s, %s: %s".formatted(found.version(), found.path(), found.why());
    return found.passedOver().isEmpty()
        ? chosen
        : "%s; passed over: %s".formatted(chosen, String.join(", ", found.passedOver()));
  }
}
