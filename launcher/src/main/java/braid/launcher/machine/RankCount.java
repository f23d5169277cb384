package braid.launcher.machine;

import braid.model.BraidException;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.regex.Pattern;

/// How many ranks this machine can hold, and how many it gets when nobody says. A count above what
/// the machine can hold is refused: the ranks would start, and then starve one another.
///
/// @param gpus those that ranks could use
public record RankCount(int cores, long availableMiB, Gpus gpus) {
  /// On the host backend, where there is no GPU to count.
  public static final int DEFAULT_ON_HOST = 4;

  public static final int MAX_PER_CORE = 4;
  public static final long MIB_PER_RANK = 100;

  private static final Pattern AVAILABLE = Pattern.compile("MemAvailable:\\s+(\\d+) kB");

  /// This machine, or the part of it that this container may use.
  ///
  /// @param visibleDevices `CUDA_VISIBLE_DEVICES`, where it is set
  public static RankCount here(Optional<String> visibleDevices) {
    return here(Gpus.here(visibleDevices));
  }

  /// For ranks that are to run on the host whatever GPUs there are.
  public static RankCount ofHost() {
    return here(Gpus.none("not looked for"));
  }

  private static RankCount here(Gpus gpus) {
    return new RankCount(Runtime.getRuntime().availableProcessors(), availableMiBHere(), gpus);
  }

  public int most() {
    return (int) Math.max(1, Math.min((long) MAX_PER_CORE * cores, availableMiB / MIB_PER_RANK));
  }

  /// One rank a GPU; on the host, four or what the machine can hold.
  public int byDefault(String backend) {
    return gpus.count() > 0 && !backend.equals(BackendChoice.HOST)
        ? gpus.count()
        : Math.min(DEFAULT_ON_HOST, most());
  }

  /// @param what how messages name it: `-n` or `BRAID_RANKS`
  /// @throws BraidException where the text is no number of ranks, or of more than there can be
  public int parse(String what, String text) {
    int count;
    try {
      count = Integer.parseInt(text.strip());
    } catch (NumberFormatException e) {
      throw new BraidException(
          "%s must be a number of ranks, 1..%d, but was \"%s\"; try %d"
              .formatted(what, most(), text, byDefault(BackendChoice.AUTO)),
          e);
    }
    if (count < 1 || count > most()) {
      throw new BraidException(
          ("%s must be 1..%d (at most %d ranks a core of %d cores, and %d MiB a rank of %d MiB available)"
                  + " but was %d; try %d")
              .formatted(
                  what,
                  most(),
                  MAX_PER_CORE,
                  cores,
                  MIB_PER_RANK,
                  availableMiB,
                  count,
                  count < 1 ? byDefault(BackendChoice.AUTO) : most()));
    }
    return count;
  }

  private static long availableMiBHere() {
    long limit = Long.MAX_VALUE;
    if (ManagementFactory.getOperatingSystemMXBean()
        instanceof com.sun.management.OperatingSystemMXBean machine) {
      limit = machine.getTotalMemorySize() >> 20; // knows the container's limit
    }
    try {
      var available = AVAILABLE.matcher(Files.readString(Path.of("/proc/meminfo")));
      return available.find() ? Math.min(limit, Long.parseLong(available.group(1)) >> 10) : limit;
    } catch (IOException e) {
      return limit; // no /proc here: all that the machine has
    }
  }
}
