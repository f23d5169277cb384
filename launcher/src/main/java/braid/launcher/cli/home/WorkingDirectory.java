package braid.launcher.cli.home;

import braid.model.BraidException;
import braid.natives.LibC;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// Directory in which this process runs, and the one in which the user called it. They differ with
/// `--cwd`: a JVM cannot change its directory, so the process is replaced by one that starts there.
/// Paths on the command line are relative to the directory of the call.
public final class WorkingDirectory {
  /// Property of the replaced process: directory of the call.
  private static final String CALLED = "braid.called";

  private static volatile boolean replaceable;

  private WorkingDirectory() {}

  /// Allows [#enter] to replace this process, since it only runs this command.
  public static void ofThisProcess() {
    replaceable = true;
  }

  /// Directory in which the user called the command.
  public static Path called() {
    return Path.of(System.getProperty(CALLED, "")).toAbsolutePath();
  }

  /// Returns a path of the command line. It stays relative if the process was not replaced.
  public static Path resolve(String text) {
    return Path.of(System.getProperty(CALLED, "")).resolve(text);
  }

  /// Makes this the directory of the process, and so of the ranks that it starts. Replaces the
  /// process unless it runs there; then the command begins again.
  ///
  /// @param from option or run with the directory, for messages
  /// @throws BraidException if there is no such directory
  public static void enter(String from, Path directory) {
    if (!Files.isDirectory(directory)) {
      throw new BraidException(
          "%s must be a directory but %s %s; check the path"
              .formatted(
                  from, directory, Files.exists(directory) ? "is a file" : "does not exist"));
    }
    try {
      if (Files.isSameFile(directory, Path.of(""))) {
        return;
      }
      if (replaceable) {
        var target = directory.toRealPath().toString();
        LibC.replaceProcess(target, Path.of("/proc/self/exe").toRealPath().toString(), again());
      }
    } catch (IOException e) {
      throw new BraidException("%s %s cannot be entered: %s".formatted(from, directory, e), e);
    }
    throw new BraidException(
        "%s %s cannot be entered by this process; call braid in that directory"
            .formatted(from, directory));
  }

  /// Returns this process's command, with the directory of the call.
  private static List<String> again() throws IOException {
    var text = Files.readString(Path.of("/proc/self/cmdline"), StandardCharsets.UTF_8);
    var command = new ArrayList<>(List.of(text.split("\0", -1)));
    command.removeLast(); // the text ends with a separator
    command.add(1, "-D" + CALLED + "=" + called());
    return command;
  }
}
