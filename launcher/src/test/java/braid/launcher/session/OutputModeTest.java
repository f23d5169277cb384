package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cell.Cell;
import braid.launcher.cell.Outcome;
import braid.model.BackendKind;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/// Output of three ranks in each mode of `%output`.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class OutputModeTest {
  private static final String TALK =
      "System.out.println(\"same\"); System.out.println(\"rank \" + world.rank());\n";

  private static final String NATIVE =
      "new ProcessBuilder(\"sh\", \"-c\", \"echo below $RANK\").inheritIO().start().waitFor();";

  private Session session;
  private Recorded output = new Recorded();

  @BeforeAll
  void start(@TempDir Path home) {
    session = Session.start(new SessionOptions(3, BackendKind.HOST, Optional.empty(), home));
  }

  @AfterAll
  void close() {
    session.close();
  }

  @BeforeEach
  void fresh() {
    run("%output diff");
    output = new Recorded();
  }

  private Outcome run(String source) {
    return session.run(new Cell("a cell", source), output);
  }

  private String printed(String source) {
    output = new Recorded();
    assertThat(run(source).failure()).isEmpty();
    return output.out.toString();
  }

  private String result(String source) {
    return run(source).result().orElseThrow().text();
  }

  @Test
  void allShowsEveryRanksLinesAndValuesWithTheirRank() {
    run("%output all");
    assertThat(printed(TALK).lines())
        .containsExactlyInAnyOrder(
            "[0] same", "[0] rank 0", "[1] same", "[1] rank 1", "[2] same", "[2] rank 2");
    assertThat(printed(NATIVE).lines())
        .containsExactlyInAnyOrder("[0] below 0", "[1] below 1", "[2] below 2");
    assertThat(printed("System.out.print(\"no end\");").lines())
        .containsExactlyInAnyOrder("[0] no end", "[1] no end", "[2] no end");
    assertThat(result("6 * 7")).isEqualTo("[0] 42\n[1] 42\n[2] 42");
    assertThat(result("%%rank 1\n6 * 7")).isEqualTo("42");
  }

  @Test
  void firstShowsTheLowestRankAsIfThereWereNoOthers() {
    run("%output first");
    assertThat(printed(TALK)).isEqualTo("same\nrank 0\n");
    assertThat(printed(NATIVE)).isEqualTo("below 0\n");
    assertThat(printed("%%rank 1,2\n" + TALK)).isEqualTo("same\nrank 1\n");
    assertThat(result("world.rank()")).isEqualTo("0");
    run("System.err.println(\"complaint\");");
    assertThat(output.err.toString()).contains("[1] complaint", "[2] complaint");
  }

  @Test
  void aModeHoldsUntilItIsChanged() {
    assertThat(printed("%output")).startsWith("output is diff: rank 0's lines");
    assertThat(printed("%output all")).startsWith("output is all: every rank's");
    run("%restart");
    assertThat(printed("%output")).startsWith("output is all");
    assertThat(run("%output some").failure().orElseThrow().message())
        .isEqualTo("%output wants all, first or diff but got `some`; did you mean all?");
    assertThat(printed("%output")).startsWith("output is all");
  }

  @Test
  void ofOneCellItIsForgottenWithTheCell() {
    assertThat(printed("%%output first\n" + TALK)).isEqualTo("same\nrank 0\n");
    assertThat(printed("%%output all\n%%rank 1\n" + TALK)).isEqualTo("[1] same\n[1] rank 1\n");
    assertThat(printed(TALK).lines())
        .containsExactlyInAnyOrder("same", "rank 0", "[1] rank 1", "[2] rank 2");
  }

  @Test
  void linesBeforeTheMagicKeepTheirMode() {
    assertThat(
            printed("System.out.println(\"a\");\n%output all\nSystem.out.println(\"b\");").lines())
        .containsExactlyInAnyOrder(
            "a",
            "output is all: every rank's lines, displays and value, each with its rank",
            "[0] b",
            "[1] b",
            "[2] b");
  }

  @Test
  void outputArrivesWhileTheCellRuns() throws Exception {
    for (var mode : new String[] {"all", "first", "diff"}) {
      var come = new CountDownLatch(1);
      output = new Recorded();
      output.onStdout = come::countDown;
      var running =
          session.begin(
              new Cell(
                  "a cell",
                  "%%output "
                      + mode
                      + "\nSystem.out.println(\"now\"); Thread.sleep(Long.MAX_VALUE);"),
              output);
      come.await();
      assertThat(running.isRunning()).isTrue();
      running.interrupt();
      running.await();
    }
  }
}
