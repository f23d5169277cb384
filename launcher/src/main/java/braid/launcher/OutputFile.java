package braid.launcher;

import braid.model.BraidException;
import braid.natives.WholeFile;
import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;

/// Checks the output file of a command before it starts.
public final class OutputFile {
  private OutputFile() {}

  /// Returns the file if [WholeFile] can write it; throws an error that names the option otherwise.
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
      return Objects.requireNonNullElse(e.getReason(), "cannot be written; name another file");
    } catch (IOException e) {
      return "cannot be written (%s); name another file".formatted(e);
    }
    var directory = target.getParent();
    if (directory == null || !Files.isDirectory(directory)) {
      return "is in a directory that does not exist; try mkdir -p " + directory;
    }
    return Files.isWritable(Files.exists(target) ? target : directory)
        ? ""
        : "cannot be written; name another file";
  }

  /// Returns the directory if it exists and is writable; throws an error that names the option
  /// otherwise.
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
