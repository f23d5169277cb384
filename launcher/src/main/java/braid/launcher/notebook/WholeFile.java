package braid.launcher.notebook;

import java.io.IOException;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;

/// Writes a file so that whoever reads it, at any time, finds the old content or the new, never a
/// part: it is written beside the target and moved over it. A link's target is replaced, not the
/// link.
public final class WholeFile {
  private WholeFile() {}

  public static void write(Path file, String content) throws IOException {
    var target = Files.exists(file) ? file.toRealPath() : file.toAbsolutePath();
    var name = "." + target.getFileName() + "." + ProcessHandle.current().pid() + ".tmp";
    var beside = target.resolveSibling(name);
    try {
      Files.writeString(
          beside, content, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING);
      try {
        Files.move(beside, target, StandardCopyOption.ATOMIC_MOVE);
      } catch (AtomicMoveNotSupportedException e) {
        Files.move(beside, target, StandardCopyOption.REPLACE_EXISTING);
      }
    } finally {
      Files.deleteIfExists(beside);
    }
  }
}
