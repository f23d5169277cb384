package braid.launcher.machine;

import braid.launcher.Counted;
import braid.model.BackendKind;
import braid.model.BraidException;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.regex.Pattern;

/// Number of ranks that this machine can hold, and the default number. A larger count is refused:
/// the ranks would start and then starve each other.
///
/// @param gpus GPUs that ranks could use
public record RankCount(int cores, long availableMiB, Gpus gpus) {
  /// Default on the host backend, without GPUs.
  public static final int DEFAULT_ON_HOST = 4;

  public static final int MAX_PER_CORE = 4;
  public static final long MIB_PER_RANK = 100;

  private static final Pattern AVAILABLE = Pattern.compile("MemAvailable:\\s+(\\d+) kB");

  /// Measures this machine, or the part of it that this container may use.
  ///
  /// @param visibleDevices `CUDA_VISIBLE_DEVICES`, if set
  public static RankCount here(Optional<String> visibleDevices) {
    return here(Gpus.here(visibleDevices));
  }

  /// Measures this machine for ranks on the host, ignoring GPUs.
  public static RankCount ofHost() {
    return here(Gpus.none("not checked"));
  }

  private static RankCount here(Gpus gpus) {
    return new RankCount(Runtime.getRuntime().availableProcessors(), availableMiBHere(), gpus);
  }

  public int most() {
    return (int) Math.max(1, Math.min((long) MAX_PER_CORE * cores, availableMiB / MIB_PER_RANK));
  }

  /// Default number of ranks: one per GPU; on the host, four or the number that the machine can
  /// hold.
  public int byDefault(BackendKind requested) {
    return gpus.count() > 0 && requested != BackendKind.HOST
        ? gpus.count()
        : Math.min(DEFAULT_ON_HOST, most());
  }

  /// @param source name in messages: `-n` or `BRAID_RANKS`
  /// @throws BraidException if the text is not a number of ranks in the allowed range
  public int parse(String source, String text) {
    int count;
    try {
      count = Integer.parseInt(text.strip());
    } catch (NumberFormatException e) {
      if (source.equals("-n") && text.startsWith("p")) {
        // -np is an option of MPI's launchers; here it is -n with the value p.
        throw new BraidException("-np is not an option of braid; did you mean -n?", e);
      }
      throw new BraidException(
          "%s must be a number of ranks, 1..%d, but was \"%s\"; try %d"
              .formatted(source, most(), text, byDefault(BackendKind.AUTO)),
          e);
    }
    if (count < 1 || count > most()) {
      throw new BraidException(
          ("%s must be 1..%d (at most %d ranks per core of %s, and %d MiB per rank of %d MiB available)"
                  + " but was %d; try %d")
              .formatted(
                  source,
                  most(),
                  MAX_PER_CORE,
                  Counted.of(cores, "core"),
                  MIB_PER_RANK,
                  availableMiB,
                  count,
                  count < 1 ? byDefault(BackendKind.AUTO) : most()));
    }
    return count;
  }

  private static long availableMiBHere() {
    long limit = Long.MAX_VALUE;
    if (ManagementFactory.getOperatingSystemMXBean()
        instanceof com.sun.management.OperatingSystemMXBean machine) {
      limit = machine.getTotalMemorySize() >> 20; // includes the container's limit
    }
    try {
      var available = AVAILABLE.matcher(Files.readString(Path.of("/proc/meminfo")));
      return available.find() ? Math.min(limit, Long.parseLong(available.group(1)) >> 10) : limit;
    } catch (IOException e) {
      return limit; // without /proc: the whole memory
    }
  }
}
