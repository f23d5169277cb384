package braid.internal.pipeline;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.OptionalLong;
import java.util.zip.CRC32C;

/// Identifies the clock that `System.nanoTime` reads. On Linux this is the kernel's monotonic
/// clock, shared by all processes of one boot and one time namespace.
final class HostClock {
  private static final Path BOOT = Path.of("/proc/sys/kernel/random/boot_id");
  private static final Path NAMESPACE = Path.of("/proc/self/ns/time");

  private HostClock() {}

  /// Returns a number that is equal in processes that read the same clock; empty if it cannot be
  /// determined.
  static OptionalLong identity() {
    return identity(BOOT, NAMESPACE);
  }

  static OptionalLong identity(Path boot, Path namespace) {
    try {
      var id = Files.readString(boot).strip();
      // A kernel without time namespaces has one clock.
      var space =
          Files.isSymbolicLink(namespace) ? Files.readSymbolicLink(namespace).toString() : "";
      var sum = new CRC32C();
      sum.update((id + " " + space).getBytes(StandardCharsets.UTF_8));
      return id.isEmpty() ? OptionalLong.empty() : OptionalLong.of(sum.getValue());
    } catch (IOException e) {
      return OptionalLong.empty();
    }
  }
}
