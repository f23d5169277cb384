package braid.launcher.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;

/// The memory of a process, as Linux counts it. Resident pages that several processes share count
/// for each of them; the proportional set divides them among them, so only that may be added up.
record ProcessMemory(double residentMiB, OptionalDouble proportionalMiB) {
  private static final double KIB_PER_MIB = 1024;

  /// Empty where the process is gone, or where there is no /proc.
  static Optional<ProcessMemory> of(ProcessHandle process) {
    var directory = Path.of("/proc", Long.toString(process.pid()));
    try {
      var resident = field(directory.resolve("status"), "VmRSS:");
      return resident.isEmpty()
          ? Optional.empty()
          : Optional.of(new ProcessMemory(resident.getAsDouble(), proportional(directory)));
    } catch (IOException e) {
      return Optional.empty(); // it has ended meanwhile: it has no memory left to weigh
    }
  }

  private static OptionalDouble proportional(Path directory) {
    try {
      return field(directory.resolve("smaps_rollup"), "Pss:");
    } catch (IOException e) {
      return OptionalDouble.empty(); // an old kernel, or a process of somebody else
    }
  }

  private static OptionalDouble field(Path file, String name) throws IOException {
    return Files.readAllLines(file).stream()
        .filter(line -> line.startsWith(name))
        .mapToDouble(line -> Double.parseDouble(line.replaceAll("[^0-9]", "")) / KIB_PER_MIB)
        .findFirst();
  }

  /// What several processes take together; empty if it is unknown for one of them.
  static OptionalDouble together(List<ProcessMemory> all) {
    if (all.stream().anyMatch(memory -> memory.proportionalMiB.isEmpty())) {
      return OptionalDouble.empty();
    }
    return OptionalDouble.of(
        all.stream().mapToDouble(memory -> memory.proportionalMiB.getAsDouble()).sum());
  }
}
