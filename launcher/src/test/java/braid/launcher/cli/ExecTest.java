package braid.launcher.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Runs plain programs by `braid exec`, in processes of their own.
@Execution(ExecutionMode.CONCURRENT)
class ExecTest {
  private static final String TROUBLED =
      """
      import braid.ProcessGroup;

      class Troubled {
        public static void main(String[] words) throws Exception {
          var world = ProcessGroup.world();
          System.out.println("ready");
          if (words[0].equals("loop")) {
            while (true) {}
          }
          if (words[0].equals("die") && world.rank() == 1) {
            Runtime.getRuntime().halt(9);
          }
          if (words[0].equals("throw") && world.rank() == 1) {
            throw new IllegalStateException("no \\"workspace\\"");
          }
          world.barrier();
        }
      }
      """;

  @TempDir Path directory;

  private Ran exec(BiConsumer<Process, String> atLine, String... arguments) throws Exception {
    var command = new ArrayList<>(List.of("exec"));
    command.addAll(Arrays.asList(arguments));
    return Ran.apart(directory, Map.of(), atLine, command.toArray(String[]::new));
  }

  private Ran exec(String... arguments) throws Exception {
    return exec((process, line) -> {}, arguments);
  }

  private void file(String name, String text) throws IOException {
    var file = directory.resolve(name);
    Files.createDirectories(file.getParent());
    Files.writeString(file, text);
  }

  @Test
  void aProgramRunsOnEveryRankAndKeepsItsMeasurements() throws Exception {
    file(
        "Overlap.java",
        """
        import braid.*;
        import braid.model.*;

        void main(String[] words) {
          var world = ProcessGroup.world();
          try (var pipe = Pipeline.on(world).gemm(GemmSpec.allGatherGemm(64, 64, 64)).build()) {
            pipe.verify();
            pipe.profile(3);
          }
          IO.println(String.join("|", words));
          IO.println(world.rank() + " of " + world.size());
        }
        """);
    var ran =
        exec("Overlap.java", "-n", "3", "--link", "unlimited", "a b", "\\u0041\"", "--", "-x");
    assertThat(ran.out())
        .contains("a b|\\u0041\"|-x\n", "0 of 3\n", "[1] 1 of 3\n", "[2] 2 of 3\n");
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(directory.resolve("runs")).isDirectoryRecursivelyContaining("glob:**/manifest.json");
    var listed = Ran.apart(directory, Map.of(), (process, line) -> {}, "runs");
    assertThat(listed.out()).contains("Overlap.java", "1 profile");
  }

  @Test
  void aProgramHasAPackageAndOtherFiles() throws Exception {
    file(
        "src/a/b/Main.java",
        "package a.b; class Main { void main() { System.out.println(Other.word()); } }");
    file(
        "src/a/b/Other.java",
        "package a.b; class Other { static String word() { return \"found\"; } }");
    var ran = exec("src/a/b/Main.java", "-n", "1");
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(ran.out()).isEqualTo("found\n");
  }

  /// A program is one statement, so its ranks drift apart by more than those of a cell.
  @Test
  void linesOfALateRankZeroAreStillMerged() throws Exception {
    file(
        "Late.java",
        """
        void main() throws Exception {
          var world = braid.ProcessGroup.world();
          world.barrier();
          if (world.rank() == 0) {
            Thread.sleep(3000);
          }
          System.out.println("same line");
        }
        """);
    var ran = exec("Late.java", "-n", "4");
    assertThat(ran.exitCode()).as(ran.err()).isZero();
    assertThat(ran.out()).isEqualTo("same line\n");
  }

  @Test
  void aFailureNamesRankAndLine() throws Exception {
    file("Troubled.java", TROUBLED);
    var ran = exec("Troubled.java", "-n", "3", "throw");
    assertThat(ran.exitCode()).isEqualTo(1);
    assertThat(ran.err())
        .contains(
            "rank 1 failed in Troubled.java, line 14\n",
            "->  14        throw new IllegalStateException",
            "IllegalStateException: no \"workspace\"\n    at main, Troubled.java, line 14\n",
            "ranks 0, 2 waited for barrier in group `world` and were released.")
        .doesNotContain("reflect", "%restart");
  }

  @Test
  void aRankThatDiesIsNamed() throws Exception {
    file("Troubled.java", TROUBLED);
    var ran = exec("Troubled.java", "-n", "2", "die");
    assertThat(ran.exitCode()).isEqualTo(138);
    assertThat(ran.err()).contains("rank 1 (pid ", "exited with code 9 while Troubled.java ran");
  }

  @Test
  void anEndlessLoopEndsAtTheTimeLimit() throws Exception {
    file("Troubled.java", TROUBLED);
    var ran = exec("Troubled.java", "-n", "2", "--timeout", "20", "loop");
    assertThat(ran.exitCode()).as(ran.err()).isEqualTo(4);
    assertThat(ran.out()).contains("ready");
    assertThat(ran.err())
        .contains("Troubled.java must end within --timeout 20 s but did not; it was interrupted");
  }

  @Test
  void anInterruptEndsTheProgramOnAllRanks() throws Exception {
    file("Troubled.java", TROUBLED.replace("System.out", "System.err"));
    var ran =
        exec(
            (process, line) -> {
              if (line.equals("[0] ready")) {
                interrupt(process);
              }
            },
            "Troubled.java",
            "-n",
            "2",
            "loop");
    assertThat(ran.exitCode()).as(ran.err()).isEqualTo(130);
    assertThat(ran.err()).contains("Troubled.java: braid was told to end by a signal");
  }

  /// A terminal sends Ctrl-C to the whole process group, so the ranks end on their own. On a busy
  /// machine it may come after the start, which is tried again then.
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2})
  void anInterruptWhileRanksStartIsOneLine(int ranks) throws Exception {
    file("Troubled.java", TROUBLED);
    String printed;
    do {
      printed = interruptedAt(ranks);
    } while (printed.startsWith("braid: interrupted; ending in order"));
    assertThat(printed).isEqualTo("braid: interrupted while starting\n");
  }

  /// Starts a command, interrupts it once it has that number of ranks, and returns its stderr.
  private String interruptedAt(int ranks) throws Exception {
    var temporary = Files.createTempDirectory(directory, "tmp");
    var command = new ArrayList<>(List.of("setsid"));
    command.addAll(Ran.command());
    command.addAll(List.of("exec", "Troubled.java", "-n", "3", "loop"));
    command.add(2, "-Djava.io.tmpdir=" + temporary);
    var process = new ProcessBuilder(command).directory(directory.toFile()).start();
    while (process.isAlive()
        && (ranks == 0
            ? temporary.toFile().list().length == 0
            : process.children().count() < ranks)) {
      Thread.onSpinWait();
    }
    new ProcessBuilder("kill", "-INT", "--", "-" + process.pid()).inheritIO().start().waitFor();
    var printed = new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(printed).isEqualTo(130);
    return printed;
  }

  private static void interrupt(Process process) {
    try {
      new ProcessBuilder("kill", "-INT", Long.toString(process.pid())).inheritIO().start();
    } catch (IOException e) {
      throw new IllegalStateException("no kill here", e);
    }
  }

  @Test
  void mistakesAreFoundBeforeARankStarts() throws Exception {
    file("Wrong.java", "class Wrong {\n  void main() { nothing(); }\n}\n");
    var ran = exec("Wrong.java");
    assertThat(ran.exitCode()).isEqualTo(2);
    assertThat(ran.err())
        .contains("Wrong.java:2: error: cannot find symbol")
        .endsWith("braid: Wrong.java does not compile; the errors are above\n");

    file("Import.java", "void main() {\n  Machine.h200x8();\n  Nothing.h200x8();\n}\n");
    assertThat(exec("Import.java").err())
        .contains("  import it first: `import braid.schedule.simulation.Machine;`\n")
        .endsWith(
            """
            2 errors
            braid: Import.java does not compile; the errors are above
            """);

    assertThat(Ran.here("exec", directory + "/None.java").err())
        .endsWith("None.java does not exist; check the path\n");
    assertThat(Ran.here("exec", directory.toString()).err())
        .endsWith("is a directory; check the path\n");
    assertThat(Ran.here("exec", directory + "/Wrong.java", "-cp", "/none.jar").err())
        .isEqualTo(
            "braid: --class-path must name jars and folders but /none.jar does not exist; check the path\n");
    file("Empty.java", "class Empty { private void main() {} void main(int number) {} }");
    var empty = Ran.here("exec", directory + "/Empty.java");
    assertThat(empty.exitCode()).isEqualTo(2);
    assertThat(empty.err())
        .isEqualTo(
            "braid: Empty must have a method main but has none; add `public static void main(String[] arguments) { … }` to it\n");
  }

  @Test
  void aProgramGetsTheHintsOfCells() throws Exception {
    file(
        "Beginner.java",
        """
        import braid.*;
        import braid.model.*;

        public class Beginner {
          public static void main(String... words) {
            var world = new ProcessGroup();
            var spec = GemmSpec.allGatherGem(64, 64, 64);
            var how = Pipeline.on(ProcessGroup.world()).overlap(4);
            new Pipeline(ProcessGroup.world());
          }
        }
        """);
    var ran = Ran.here("exec", directory + "/Beginner.java");
    assertThat(ran.exitCode()).isEqualTo(2);
    assertThat(ran.err())
        .contains(
            "Beginner.java:6: error: ProcessGroup has no public constructor: begin with ProcessGroup.world()\n",
            "  did you mean `GemmSpec.allGatherGemm`?\n",
            "  a number of splits is part of a tuning: `var how = Pipeline.on(ProcessGroup.world()).overlap(Overlap.pipelined(4));`\n",
            "Beginner.java:9: error: Pipeline has no public constructor: begin with Pipeline.on(…)\n",
            "4 errors\n")
        .doesNotContain("PlanCache");
  }
}
