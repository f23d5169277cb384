package braid.launcher.cli.run;

import braid.launcher.cli.home.Env;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/// The terminal of the command, if stderr goes to one. `System.console()` only tests stdin and
/// stdout.
final class Terminal {
  private static final long STTY_PATIENCE_SECONDS = 1;

  private Terminal() {}

  static boolean isStandardError() {
    try {
      var target = Files.readSymbolicLink(Path.of("/proc/self/fd/2")).toString();
      return target.startsWith("/dev/pts/") || target.startsWith("/dev/tty");
    } catch (IOException | UnsupportedOperationException e) {
      return false; // where that cannot be known, plain lines are always right
    }
  }

  static int columns(Env env) {
    try {
      var stty =
          new ProcessBuilder("stty", "size")
              .redirectInput(new File("/dev/tty"))
              .redirectError(ProcessBuilder.Redirect.DISCARD)
              .start();
      if (!stty.waitFor(STTY_PATIENCE_SECONDS, TimeUnit.SECONDS)) {
        stty.destroyForcibly();
        return env.columns();
      }
      var size = new String(stty.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
      var words = size.strip().split(" ", -1);
      int columns =
          words.length == 2 && words[1].matches("[0-9]{1,4}") ? Integer.parseInt(words[1]) : 0;
      return columns > 0 ? columns : env.columns();
    } catch (IOException e) {
      return env.columns(); // no stty here
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return env.columns();
    }
  }
}
