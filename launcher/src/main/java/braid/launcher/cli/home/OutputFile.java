package braid.launcher.cli.home;

import braid.BraidException;
import java.nio.file.Files;
import java.nio.file.Path;

/// Where a command is to write, looked at before it begins.
public final class OutputFile {
  private OutputFile() {}

  /// The file, if it can be written; else a mistake of that option.
  public static Path writable(String option, Path file) {
    var directory = file.toAbsolutePath().getParent();
    var reason =
        Files.isDirectory(file)
            ? "is a directory; name a file in it"
            : directory == null || !Files.isDirectory(directory)
                ? "is in a directory that does not exist; try mkdir -p " + directory
                : !Files.isWritable(Files.exists(file) ? file : directory)
                    ? "cannot be written; name another place"
                    : "";
    if (!reason.isEmpty()) {
      throw new BraidException(option + " must be a file to write but " + file + " " + reason);
    }
    return file;
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
