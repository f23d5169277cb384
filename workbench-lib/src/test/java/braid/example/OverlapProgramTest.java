package braid.example;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.function.Predicate;
import org.junit.jupiter.api.Test;

/// Runs the program as its comment says, in a JVM of its own.
class OverlapProgramTest {
  @Test
  void theProgramVerifiesAndPrintsARowForEachRank() throws Exception {
    var program =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                System.getProperty("java.class.path"),
                OverlapProgram.class.getName(),
                "3")
            .redirectErrorStream(true)
            .start();
    String output;
    try (var lines = program.getInputStream()) {
      output = new String(lines.readAllBytes(), StandardCharsets.UTF_8);
    }
    assertThat(program.waitFor()).as(output).isZero();
    assertThat(output.lines().filter(line -> line.endsWith(": verified")))
        .satisfiesExactly(
            unfused -> assertThat(unfused).startsWith("unfused"),
            overlapped -> assertThat(overlapped).startsWith("pipelined"));
    for (int rank = 0; rank < 3; rank++) {
      assertThat(output.lines()).filteredOn(startsWithRank(rank)).hasSizeGreaterThanOrEqualTo(2);
    }
  }

  /// A row of the table begins with its rank.
  private static Predicate<String> startsWithRank(int rank) {
    return line -> line.strip().matches(rank + " +[0-9.]+ +.*");
  }
}
