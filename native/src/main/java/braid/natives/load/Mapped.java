package braid.natives.load;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/// What this process has mapped, as the kernel lists it.
final class Mapped {
  private static final Path MAPS = Path.of("/proc/self/maps");

  private Mapped() {}

  /// The file of a library that was opened by its soname: that name, or one that goes on after its
  /// version's first number.
  static Optional<Path> file(String soname) {
    var stem = soname.substring(0, soname.lastIndexOf('.') + 1);
    try (var lines = Files.lines(MAPS)) {
      return lines
          .filter(line -> line.indexOf('/') >= 0)
          .map(line -> Path.of(line.substring(line.indexOf('/'))))
          .filter(file -> String.valueOf(file.getFileName()).startsWith(stem))
          .findFirst();
    } catch (IOException | UncheckedIOException e) {
      return Optional.empty(); // without /proc the name must do
    }
  }
}
