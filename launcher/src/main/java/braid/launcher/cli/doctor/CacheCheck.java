package braid.launcher.cli.doctor;

import static braid.internal.rank.Env.ALGORITHMS;
import static braid.internal.rank.Env.KERNELS;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/// What ranks on GPUs keep on disk, since it takes time to find out: where it is, how much, and how
/// to be rid of it.
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
          "make it writable, or name another: BRAID_CACHE");
    }
    try {
      long kernels = files(folder.resolve(KERNELS));
      long algorithms = files(folder.resolve(ALGORITHMS));
      return Check.ok(
          ID,
          ID,
          kernels + algorithms == 0
              ? folder + ", nothing in it yet"
              : "%s: %d of compiled kernels, %d of chosen GEMM algorithms; to have them made anew: rm -r %s/{%s,%s}"
                  .formatted(folder, kernels, algorithms, folder, KERNELS, ALGORITHMS));
    } catch (IOException | UncheckedIOException e) {
      return Check.absent(
          ID, ID, "%s cannot be read: %s".formatted(folder, e), "name another: BRAID_CACHE");
    }
  }

  /// What is not there yet is made by the first rank.
  private static boolean canBeWritten(Path folder) {
    var there = folder.toAbsolutePath();
    while (!Files.exists(there) && there.getParent() != null) {
      there = there.getParent();
    }
    return Files.isDirectory(there) && Files.isWritable(there);
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
