package braid.natives.cublasmp;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// Compiles libraries of C for tests.
final class Gcc {
  private Gcc() {}

  /// Compiles a source into a library, or skips the test if gcc is not installed.
  static void library(Path source, Path file, String... options)
      throws IOException, InterruptedException {
    var command = new ArrayList<>(List.of("gcc", "-shared", "-fPIC"));
    command.addAll(List.of(options));
    command.addAll(List.of("-o", file.toString(), source.toString(), "-ldl", "-pthread"));
    Process compiler;
    try {
      compiler = new ProcessBuilder(command).inheritIO().start();
    } catch (IOException e) {
      assumeTrue(false, "gcc is not installed here: " + e.getMessage());
      throw e;
    }
    assertThat(compiler.waitFor()).isZero();
  }
}
