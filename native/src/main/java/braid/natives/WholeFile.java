package braid.natives;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/// A file that is there whole or not at all, however many processes write it at once.
public final class WholeFile {
  private WholeFile() {}

  /// Makes its folder too. What was there before is replaced.
  public static void write(Path file, byte[] content) throws IOException {
    var folder = file.toAbsolutePath().getParent();
    Files.createDirectories(folder);
    var part = Files.createTempFile(folder, "unfinished", ".part");
    try {
      Files.write(part, content);
      Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
    } finally {
      Files.deleteIfExists(part);
    }
  }
}
