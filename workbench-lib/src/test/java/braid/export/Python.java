package braid.export;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// Runs Python, an independent reader of what is exported for it.
final class Python {
  private Python() {}

  /// Returns what a program prints; skips the test if there is no Python.
  static String run(Path directory, String... arguments) throws IOException, InterruptedException {
    var command = new ArrayList<>(List.of("python3", "-B"));
    command.addAll(List.of(arguments));
    Process process;
    try {
      process =
          new ProcessBuilder(command)
              .directory(directory.toFile())
              .redirectErrorStream(true)
              .redirectInput(Path.of("/dev/null").toFile())
              .start();
    } catch (IOException e) {
      assumeTrue(false, "python3 cannot be started: " + e.getMessage());
      throw e;
    }
    var output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(output).isZero();
    return output;
  }

  /// Returns what the program prints that imports this text as module `exported`.
  static String run(Path directory, String exported, String program)
      throws IOException, InterruptedException {
    Files.writeString(directory.resolve("exported.py"), exported);
    Files.writeString(directory.resolve("program.py"), program);
    return run(directory, "program.py");
  }
}
