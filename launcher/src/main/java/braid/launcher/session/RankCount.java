package braid.launcher.session;

import braid.BraidException;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;

/// How many ranks this machine can hold, and how many it gets when nobody says. A count above what
/// the machine can hold is refused: the ranks would start, and then starve one another.
public record RankCount(int cores, long availableMiB, int gpus) {
  /// On the host backend, where there is no GPU to count.
  public static final int DEFAULT_ON_HOST = 4;

  public static final int MAX_PER_CORE = 4;
  public static final long MIB_PER_RANK = 100;

  private static final Pattern AVAILABLE = Pattern.compile("MemAvailable:\\s+(\\d+) kB");
  private static final Pattern GPU = Pattern.compile("nvidia[0-9]+");

  /// This machine, or the part of it that this container may use.
  public static RankCount here() {
    return new RankCount(
        Runtime.getRuntime().availableProcessors(), availableMiBHere(), gpusHere());
  }

  public int most() {
    return (int) Math.max(1, Math.min((long) MAX_PER_CORE * cores, availableMiB / MIB_PER_RANK));
  }

  /// One rank a GPU; on the host, four or what the machine can hold.
  public int byDefault(String backend) {
    return gpus > 0 && !backend.equals("host") ? gpus : Math.min(DEFAULT_ON_HOST, most());
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
              .formatted(what, most(), text, byDefault("auto")),
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
                  count < 1 ? byDefault("auto") : most()));
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

  private static int gpusHere() {
    try (var devices = Files.newDirectoryStream(Path.of("/dev"), "nvidia*")) {
      int count = 0;
      for (var device : devices) {
        count += GPU.matcher(device.getFileName().toString()).matches() ? 1 : 0;
      }
      return count;
    } catch (IOException e) {
      return 0; // no /dev that can be read holds no GPU that can be used
    }
  }
}
