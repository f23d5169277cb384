package braid;

import braid.model.HostLoad;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Optional;

/// Processors of a rank's host that other processes keep busy while the ranks work. The load
/// average alone does not show them: for minutes it also counts what the ranks themselves did. So
/// the processor time of the machine is compared with the time of the ranks and of the front. Only
/// Linux tells; elsewhere nothing is known.
final class MachineLoad {
  /// Shortest time that is judged: Linux counts in steps of 10 ms.
  static final long SHORTEST_NANOS = 200_000_000;

  private static final long NANOS_PER_TICK = 10_000_000;

  /// Columns of /proc/stat that count work, from 1: user, nice, system, interrupts.
  private static final int[] BUSY = {1, 2, 3, 6, 7};

  private final ProcessGroup group;
  private final long startNanos = System.nanoTime();
  private final long machineNanos = machineNanos();
  private final long ownNanos = cpuNanos(ProcessHandle.current());
  private final long frontNanos = front().map(MachineLoad::cpuNanos).orElse(0L);

  /// Begins to observe. Every rank of the group does.
  MachineLoad(ProcessGroup group) {
    this.group = group;
  }

  /// Returns what other processes did since the creation; empty if that is unknown, and on every
  /// rank but the root. Every rank of the group calls it.
  Optional<HostLoad> sinceCreation(int root) {
    var own = ByteBuffer.allocate(2 * Long.BYTES);
    own.putLong(ProcessHandle.current().pid());
    own.putLong(cpuNanos(ProcessHandle.current()) - ownNanos);
    var all = group.gather(own.array());
    long elapsedNanos = System.nanoTime() - startNanos;
    int cores = allowed().cardinality();
    if (group.rank() != root || machineNanos == 0 || cores == 0 || elapsedNanos < SHORTEST_NANOS) {
      return Optional.empty();
    }
    long known =
        front().map(MachineLoad::cpuNanos).orElse(0L)
            - frontNanos
            + nanos(all, group.host(root).ranks());
    // Below 0 by the error of the ticks, if others did nothing.
    double others = Math.max(0, (double) (machineNanos() - machineNanos - known) / elapsedNanos);
    return Optional.of(new HostLoad(others, cores, load()));
  }

  /// Returns the processor time of some ranks. Ranks that are threads share a process, which counts
  /// once.
  ///
  /// @param all process and time of every rank
  static long nanos(List<byte[]> all, List<Integer> ranks) {
    var ofProcesses = new HashMap<Long, Long>();
    for (int rank : ranks) {
      var pair = ByteBuffer.wrap(all.get(rank));
      ofProcesses.merge(pair.getLong(), pair.getLong(), Math::max);
    }
    return ofProcesses.values().stream().mapToLong(Long::longValue).sum();
  }

  /// Returns the processor time of all processes since the boot; 0 if it is unknown.
  private static long machineNanos() {
    try {
      return busyNanos(Files.readAllLines(Path.of("/proc/stat")), allowed());
    } catch (IOException | NumberFormatException e) {
      return 0; // another system, or a container that hides it
    }
  }

  /// Returns the time for which those processors worked.
  ///
  /// @param stat lines of /proc/stat
  static long busyNanos(List<String> stat, BitSet processors) {
    long ticks = 0;
    for (var line : stat) {
      var fields = line.split(" +", -1);
      var name = fields[0];
      if (name.matches("cpu\\d+") && processors.get(Integer.parseInt(name.substring(3)))) {
        for (int column : BUSY) {
          ticks += Long.parseLong(fields[column]);
        }
      }
    }
    return ticks * NANOS_PER_TICK;
  }

  /// Returns the processors that this process may use; none if they are unknown.
  private static BitSet allowed() {
    try (var lines = Files.lines(Path.of("/proc/self/status"))) {
      return lines
          .filter(line -> line.startsWith("Cpus_allowed_list:"))
          .findFirst()
          .map(line -> processors(line.substring(line.indexOf(':') + 1).strip()))
          .orElseGet(BitSet::new);
    } catch (IOException | NumberFormatException e) {
      return new BitSet(); // as above
    }
  }

  /// @param list numbers and ranges, such as "0-3,8"
  static BitSet processors(String list) {
    var processors = new BitSet();
    for (var range : list.split(",", -1)) {
      var ends = range.split("-", -1);
      processors.set(Integer.parseInt(ends[0]), Integer.parseInt(ends[ends.length - 1]) + 1);
    }
    return processors;
  }

  private static double load() {
    try {
      return Double.parseDouble(Files.readString(Path.of("/proc/loadavg")).split(" ", 2)[0]);
    } catch (IOException | NumberFormatException e) {
      return 0; // as above
    }
  }

  private static Optional<ProcessHandle> front() {
    return ProcessHandle.current().parent();
  }

  private static long cpuNanos(ProcessHandle process) {
    return process.info().totalCpuDuration().map(Duration::toNanos).orElse(0L);
  }
}
