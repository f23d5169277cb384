package braid.launcher.soak;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Traces of a session on the machine: processes, shared memory and temporary files, as Linux shows
/// them.
final class Traces {
  private static final Path SHARED_MEMORY = Path.of("/dev/shm");
  private static final Path TEMPORARY = Path.of(System.getProperty("java.io.tmpdir", "/tmp"));
  private static final String RANK = "braid.launcher.rank.RankMain";
  private static final double KIB_PER_MIB = 1024;
  private static final int JCMD_SECONDS = 10;

  private Traces() {}

  /// Resources of a session's front.
  record Resources(int threads, int files, double residentMiB) {
    static Resources by(long pid) throws IOException {
      return new Resources(entries(pid, "task"), entries(pid, "fd"), memoryMiB(pid));
    }
  }

  private static int entries(long pid, String directory) throws IOException {
    try (var entries = Files.list(Path.of("/proc", Long.toString(pid), directory))) {
      return (int) entries.count();
    }
  }

  private static double memoryMiB(long pid) throws IOException {
    for (var line : Files.readAllLines(Path.of("/proc", Long.toString(pid), "status"))) {
      if (line.startsWith("VmRSS:")) {
        return Double.parseDouble(line.replaceAll("[^0-9]", "")) / KIB_PER_MIB;
      }
    }
    return 0;
  }

  /// Returns the living ranks of this front.
  static List<Long> ranks(long front) {
    return ProcessHandle.of(front).stream()
        .flatMap(ProcessHandle::children)
        .map(ProcessHandle::pid)
        .filter(Traces::isRank)
        .sorted()
        .toList();
  }

  private static boolean isRank(long pid) {
    try {
      var line =
          Files.readString(
              Path.of("/proc", Long.toString(pid), "cmdline"), StandardCharsets.ISO_8859_1);
      return line.contains(RANK);
    } catch (IOException e) {
      return false; // it has ended
    }
  }

  /// Returns true if the process exists and has not ended.
  static boolean lives(long pid) {
    try {
      var stat = Files.readString(Path.of("/proc", Long.toString(pid), "stat"));
      return stat.charAt(stat.lastIndexOf(')') + 2) != 'Z';
    } catch (IOException e) {
      return false;
    }
  }

  /// Writes thread dumps of a front and its ranks to a file in the current directory. Returns its
  /// name.
  static Path dumpThreads(long front) throws InterruptedException {
    var file = Path.of("soak-hang-%d.txt".formatted(front));
    var jcmd = Path.of(System.getProperty("java.home", ""), "bin", "jcmd").toString();
    try {
      for (long pid : Stream.concat(Stream.of(front), ranks(front).stream()).toList()) {
        var _ =
            new ProcessBuilder(jcmd, Long.toString(pid), "Thread.print")
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(file.toFile()))
                .start()
                .waitFor(JCMD_SECONDS, TimeUnit.SECONDS);
      }
    } catch (IOException e) {
      throw new UncheckedIOException("the threads cannot be kept", e);
    }
    return file;
  }

  /// Braid's names in shared memory.
  static Set<String> shared() throws IOException {
    return named(SHARED_MEMORY);
  }

  /// Braid's names among the temporary files.
  static Set<String> temporary() throws IOException {
    return named(TEMPORARY);
  }

  private static Set<String> named(Path folder) throws IOException {
    try (var files = Files.list(folder)) {
      return files
          .map(file -> file.getFileName().toString())
          .filter(name -> name.toLowerCase(Locale.ROOT).contains("braid"))
          .collect(Collectors.toCollection(TreeSet::new));
    }
  }
}
