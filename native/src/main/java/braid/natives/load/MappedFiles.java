package braid.natives.load;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/// Files mapped by this process, as the kernel lists them.
final class MappedFiles {
  private static final Path MAPS = Path.of("/proc/self/maps");

  private MappedFiles() {}

  /// Returns the file of a library opened by its soname; the file's version may be longer than the
  /// soname's.
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
