package braid.internal.pipeline;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.OptionalLong;
import java.util.zip.CRC32C;

/// Whose clock `System.nanoTime` reads. On Linux it is the kernel's monotonic clock: one for all
/// processes of one boot and one time namespace.
final class HostClock {
  private static final Path BOOT = Path.of("/proc/sys/kernel/random/boot_id");
  private static final Path NAMESPACE = Path.of("/proc/self/ns/time");

  private HostClock() {}

  /// A number that processes have in common where they read one clock; empty where that cannot be
  /// told.
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
