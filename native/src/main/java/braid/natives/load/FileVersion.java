package braid.natives.load;

import braid.natives.load.Libraries.Library;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.regex.Pattern;

/// Version of a copy by its path, without loading it. Loading two copies with one soname would be
/// worse than an inexact version: dependents would get the first one.
final class FileVersion {
  private static final Pattern FILE = Pattern.compile(".*\\.so\\.(\\d+(?:\\.\\d+)+)");
  private static final Pattern TOOLKIT = Pattern.compile(".*/cuda-(\\d+(?:\\.\\d+)*)(?:/.*)?");
  private static final Pattern PACKAGE = Pattern.compile("nvidia[^-]*-(\\d+(?:\\.\\d+)*).*");
  private static final int FIRST_YEAR = 2000;

  private FileVersion() {}

  static Optional<Version> version(Library library, Path file) {
    var real = SearchFolders.real(file);
    return ofFile(library, real).or(() -> ofPackage(file)).or(() -> ofToolkit(library, real));
  }

  /// CUPTI's files are numbered by year but its packages like the toolkit, so years are ignored.
  private static Optional<Version> ofFile(Library library, Path real) {
    return first(FILE, String.valueOf(real.getFileName()))
        .filter(version -> library != Library.CUPTI || version.first() < FIRST_YEAR);
  }

  /// Version of the Python package that contains the file.
  private static Optional<Version> ofPackage(Path file) {
    for (var folder = file.getParent(); folder != null; folder = folder.getParent()) {
      var name = String.valueOf(folder.getFileName());
      if (name.equals("site-packages") || name.equals("dist-packages")) {
        return ofPackage(folder, folder.relativize(file).toString());
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
      return Optional.empty(); // an unreadable version is shown as unknown
    }
  }

  /// Version of the toolkit's folder, for libraries with the toolkit's numbering.
  private static Optional<Version> ofToolkit(Library library, Path real) {
    return switch (library) {
      case CUDA_RUNTIME, NVRTC, CUPTI, NVTX, NVTX_2 -> first(TOOLKIT, real.toString());
      case CUDA_DRIVER, CUBLAS_LT, CUBLAS_MP, CUDNN, NCCL, NVML, NVSHMEM, UCX -> Optional.empty();
    };
  }

  private static Optional<Version> first(Pattern pattern, String text) {
    var matcher = pattern.matcher(text);
    return matcher.matches() ? Version.of(matcher.group(1)) : Optional.empty();
  }
}
