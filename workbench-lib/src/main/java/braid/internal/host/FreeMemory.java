package braid.internal.host;

import braid.BraidException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/// What the machine has left. The kernel grants more than it has and kills a process, any process,
/// when that is used: so who wants much is told before.
public final class FreeMemory {
  private static final Path SOURCE = Path.of("/proc/meminfo");
  private static final String FIELD = "MemAvailable:";
  private static final long BYTES_PER_UNIT = 1024;

  /// Less is not worth a look.
  private static final long MUCH_BYTES = 64 << 20;

  private FreeMemory() {}

  /// Fails where that many bytes are more than there are.
  public static void check(long bytes) {
    if (bytes >= MUCH_BYTES) {
      long available = availableBytes();
      if (bytes > available) {
        throw new BraidException(
            "%d bytes were asked for but %d are available; take a smaller problem or fewer ranks"
                .formatted(bytes, available));
      }
    }
  }

  private static long availableBytes() {
    try (var lines = Files.lines(SOURCE)) {
      return lines
          .filter(line -> line.startsWith(FIELD))
          .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) * BYTES_PER_UNIT)
          .findFirst()
          .orElse(Long.MAX_VALUE);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read " + SOURCE, e);
    }
  }
}
