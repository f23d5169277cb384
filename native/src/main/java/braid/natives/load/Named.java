package braid.natives.load;

import braid.natives.load.Libraries.Library;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.regex.Pattern;

/// The version of a copy, told without loading it. Two copies with one soname in a process are
/// worse than a version that is not exact: what needs the soname gets whichever came first.
final class Named {
  private static final Pattern FILE = Pattern.compile(".*\\.so\\.(\\d+(?:\\.\\d+)+)");
  private static final Pattern TOOLKIT = Pattern.compile(".*/cuda-(\\d+(?:\\.\\d+)*)(?:/.*)?");
  private static final Pattern PACKAGE = Pattern.compile("nvidia[^-]*-(\\d+(?:\\.\\d+)*).*");
  private static final int FIRST_YEAR = 2000;

  private Named() {}

  static Optional<Version> version(Library which, Path file) {
    var real = Places.real(file);
    return ofFile(which, real).or(() -> ofPackage(file)).or(() -> ofToolkit(which, real));
  }

  /// CUPTI's files are numbered by years, its packages like the toolkit: years compare with
  /// nothing.
  private static Optional<Version> ofFile(Library which, Path real) {
    return first(FILE, String.valueOf(real.getFileName()))
        .filter(version -> which != Library.CUPTI || version.first() < FIRST_YEAR);
  }

  /// A Python package lists its files beside them.
  private static Optional<Version> ofPackage(Path file) {
    for (var at = file.getParent(); at != null; at = at.getParent()) {
      var name = String.valueOf(at.getFileName());
      if (name.equals("site-packages") || name.equals("dist-packages")) {
        return ofPackage(at, at.relativize(file).toString());
      }
    }
    return Optional.empty();
  }

  private static Optional<Version> ofPackage(Path packages, String file) {
    try (var infos = Files.newDirectoryStream(packages, "nvidia*.dist-info")) {
      for (Path info : infos) {
        var files = info.resolve("RECORD");
        if (Files.isReadable(files) && Files.readString(files).contains(file + ",")) {
          return first(PACKAGE, String.valueOf(info.getFileName()));
        }
      }
      return Optional.empty();
    } catch (IOException | DirectoryIteratorException e) {
      return Optional.empty(); // a version that cannot be read is unknown, and shown as that
    }
  }

  /// Only of what is numbered like the toolkit it came with.
  private static Optional<Version> ofToolkit(Library which, Path real) {
    return switch (which) {
      case CUDA_RUNTIME, NVRTC, CUPTI, NVTX, NVTX_2 -> first(TOOLKIT, real.toString());
      case CUDA_DRIVER, CUBLAS_LT, NCCL, NVML, NVSHMEM -> Optional.empty();
    };
  }

  private static Optional<Version> first(Pattern pattern, String text) {
    var matcher = pattern.matcher(text);
    return matcher.matches() ? Version.of(matcher.group(1)) : Optional.empty();
  }
}
