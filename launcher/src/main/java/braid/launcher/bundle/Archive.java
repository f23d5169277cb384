package braid.launcher.bundle;

import braid.model.BraidException;
import braid.natives.WholeFile;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/// A folder packed into one `.tar.xz`, written atomically.
///
/// @param effort compression level of xz, `-0` to `-9e`
record Archive(String effort, long mostBytes) {
  /// Smallest archive, which takes a minute or two to pack, and the size limit of bundles.
  static final Archive SMALLEST = new Archive("-9e", 50L << 20);

  private static final int LARGEST_SHOWN = 6;

  /// @return its size in bytes
  /// @throws BraidException if it exceeds the size limit
  long pack(Path folder, Path file) throws IOException, InterruptedException {
    var packed = Files.createTempFile("braid-bundle", ".tar.xz");
    try {
      write(folder.toAbsolutePath(), packed);
      long bytes = Files.size(packed);
      if (bytes > mostBytes) {
        throw new BraidException(
            "a bundle must be at most %s but is %s; leave something out of its largest files: %s"
                .formatted(mib(mostBytes), mib(bytes), largest(folder)));
      }
      WholeFile.write(file, Files.readAllBytes(packed));
      return bytes;
    } finally {
      Files.deleteIfExists(packed);
    }
  }

  private void write(Path folder, Path file) throws IOException, InterruptedException {
    var log = Files.createTempFile("braid-bundle", ".log");
    try {
      var tar =
          new ProcessBuilder(
              "tar",
              "--sort=name",
              "--owner=0",
              "--group=0",
              "--numeric-owner",
              "-C",
              folder.resolve("..").normalize().toString(),
              "-cf",
              "-",
              folder.getFileName().toString());
      var xz = new ProcessBuilder("xz", "-T0", effort, "-c");
      for (var one : List.of(tar, xz)) {
        one.redirectError(ProcessBuilder.Redirect.appendTo(log.toFile()));
      }
      xz.redirectOutput(file.toFile());
      var failed = new ArrayList<String>();
      for (var process : ProcessBuilder.startPipeline(List.of(tar, xz))) {
        if (process.waitFor() != 0) {
          failed.add("exit code " + process.exitValue());
        }
      }
      if (!failed.isEmpty()) {
        throw new IOException(
            "tar and xz failed (%s): %s"
                .formatted(
                    String.join(", ", failed),
                    Files.readString(log, StandardCharsets.UTF_8).strip()));
      }
    } finally {
      Files.delete(log);
    }
  }

  private static String largest(Path folder) throws IOException {
    try (var files = Files.walk(folder)) {
      return files
          .filter(Files::isRegularFile)
          .sorted(Comparator.comparingLong(Archive::size).reversed())
          .limit(LARGEST_SHOWN)
          .map(file -> folder.relativize(file) + " " + mib(size(file)))
          .collect(Collectors.joining(", "));
    }
  }

  private static long size(Path file) {
    return file.toFile().length();
  }

  static String mib(long bytes) {
    return String.format(Locale.ROOT, "%.1f MiB", bytes / (double) (1 << 20));
  }
}
