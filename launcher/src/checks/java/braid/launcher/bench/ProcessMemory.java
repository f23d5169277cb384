package braid.launcher.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;

/// Memory of a process, as Linux counts it. Resident pages shared by several processes count fully
/// for each; the proportional set divides them, so only that may be summed.
record ProcessMemory(double residentMiB, OptionalDouble proportionalMiB) {
  private static final double KIB_PER_MIB = 1024;

  /// Returns the memory of a process; empty if the process has ended or /proc is missing.
  static Optional<ProcessMemory> of(ProcessHandle process) {
    var directory = Path.of("/proc", Long.toString(process.pid()));
    try {
      var resident = field(directory.resolve("status"), "VmRSS:");
      return resident.isEmpty()
          ? Optional.empty()
          : Optional.of(new ProcessMemory(resident.getAsDouble(), proportional(directory)));
    } catch (IOException e) {
      return Optional.empty(); // the process has ended
    }
  }

  private static OptionalDouble proportional(Path directory) {
    try {
      return field(directory.resolve("smaps_rollup"), "Pss:");
    } catch (IOException e) {
      return OptionalDouble.empty(); // an old kernel, or another user's process
    }
  }

  private static OptionalDouble field(Path file, String name) throws IOException {
    return Files.readAllLines(file).stream()
        .filter(line -> line.startsWith(name))
        .mapToDouble(line -> Double.parseDouble(line.replaceAll("[^0-9]", "")) / KIB_PER_MIB)
        .findFirst();
  }

  /// Returns the total of several processes; empty if it is unknown for one of them.
  static OptionalDouble total(List<ProcessMemory> all) {
    if (all.stream().anyMatch(memory -> memory.proportionalMiB.isEmpty())) {
      return OptionalDouble.empty();
    }
    return OptionalDouble.of(
        all.stream().mapToDouble(memory -> memory.proportionalMiB.getAsDouble()).sum());
  }
}
