package braid.launcher.cli.doctor;

import static braid.internal.rank.Env.ALGORITHMS;
import static braid.internal.rank.Env.KERNELS;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/// Check of the cache of ranks on GPUs: its place, its content, and how to clear it.
final class CacheCheck {
  private static final String ID = "cache";

  private CacheCheck() {}

  static Check of(Path folder) {
    if (!canBeWritten(folder)) {
      return Check.absent(
          ID,
          ID,
          "%s cannot be written: kernels are compiled and GEMM algorithms measured at every start"
              .formatted(folder),
          "make it writable, or set BRAID_CACHE to another folder");
    }
    try {
      long kernels = files(folder.resolve(KERNELS));
      long algorithms = files(folder.resolve(ALGORITHMS));
      return Check.ok(
          ID,
          ID,
          kernels + algorithms == 0
              ? folder + ", empty"
              : "%s: %d of compiled kernels, %d of chosen GEMM algorithms; to recreate them: rm -r %s/{%s,%s}"
                  .formatted(folder, kernels, algorithms, folder, KERNELS, ALGORITHMS));
    } catch (IOException | UncheckedIOException e) {
      return Check.absent(
          ID,
          ID,
          "%s cannot be read: %s".formatted(folder, e),
          "set BRAID_CACHE to another folder");
    }
  }

  /// Returns true if the folder can be written or created.
  private static boolean canBeWritten(Path folder) {
    var existing = folder.toAbsolutePath();
    while (!Files.exists(existing) && existing.getParent() != null) {
      existing = existing.getParent();
    }
    return Files.isDirectory(existing) && Files.isWritable(existing);
  }

  private static long files(Path folder) throws IOException {
    if (!Files.isDirectory(folder)) {
      return 0;
    }
    try (var all = Files.walk(folder)) {
      return all.filter(Files::isRegularFile).count();
    }
  }
}
