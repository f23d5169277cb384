package braid.launcher;

import braid.model.BraidException;
import braid.natives.WholeFile;
import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;

/// Where a command is to write, looked at before it begins.
public final class OutputFile {
  private OutputFile() {}

  /// The file, if [WholeFile] can write it; else a mistake of that option.
  public static Path writable(String option, Path file) {
    var reason = Files.isDirectory(file) ? "is a directory; name a file in it" : refusal(file);
    if (!reason.isEmpty()) {
      throw new BraidException(option + " must be a file to write but " + file + " " + reason);
    }
    return file;
  }

  private static String refusal(Path file) {
    Path target;
    try {
      target = WholeFile.target(file);
    } catch (FileSystemException e) {
      return Objects.requireNonNullElse(e.getReason(), "cannot be written; name another place");
    } catch (IOException e) {
      return "cannot be written (%s); name another place".formatted(e);
    }
    var directory = target.getParent();
    if (directory == null || !Files.isDirectory(directory)) {
      return "is in a directory that does not exist; try mkdir -p " + directory;
    }
    return Files.isWritable(Files.exists(target) ? target : directory)
        ? ""
        : "cannot be written; name another place";
  }

  /// The directory, if it is one and can be written to; else a mistake of that option.
  public static Path directory(String option, Path directory, String why) {
    var reason =
        !Files.exists(directory)
            ? "does not exist; try mkdir -p " + directory
            : !Files.isDirectory(directory)
                ? "is a file; name a directory"
                : !Files.isWritable(directory) ? "cannot be written to; name another" : "";
    if (!reason.isEmpty()) {
      throw new BraidException(
          "%s must be a directory where %s but %s %s".formatted(option, why, directory, reason));
    }
    return directory;
  }
}
