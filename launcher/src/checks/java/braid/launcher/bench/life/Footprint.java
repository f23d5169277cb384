package braid.launcher.bench.life;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/// Resources of the front and its ranks: threads and open files as Linux counts them, of the front
/// first and then of each rank, and the front's used heap after a collection.
///
/// @param threads threads of each process
/// @param files file descriptors of each process
public record Footprint(List<Integer> threads, List<Integer> files, double heapMiB) {
  private static final double BYTES_PER_MIB = 1 << 20;

  /// Measures this process and its children.
  static Footprint now() {
    var front = ProcessHandle.current();
    var pids =
        Stream.concat(Stream.of(front.pid()), front.children().map(ProcessHandle::pid).sorted())
            .toList();
    System.gc();
    var memory = Runtime.getRuntime();
    return new Footprint(
        pids.stream().map(pid -> entries(pid, "task")).toList(),
        pids.stream().map(pid -> entries(pid, "fd")).toList(),
        (memory.totalMemory() - memory.freeMemory()) / BYTES_PER_MIB);
  }

  private static int entries(long pid, String directory) {
    try (var entries = Files.list(Path.of("/proc", Long.toString(pid), directory))) {
      return (int) entries.count();
    } catch (IOException e) {
      throw new UncheckedIOException("process " + pid + " has no /proc entry any more", e);
    }
  }
}
