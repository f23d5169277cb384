package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.selftest.Sweep;
import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.launcher.cell.CellFailure.Cause;
import braid.launcher.cell.Outcome;
import braid.launcher.cell.RunningCell;
import braid.model.BackendKind;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Ranks whose process is stopped: the front only notices that they do not answer.
class FrozenRankTest {
  private static final String BEGUN = "System.out.println(\"begun\");\n";

  @TempDir static Path home;

  @RegisterExtension
  static final SharedSession SHARED =
      new SharedSession(
          () -> Session.start(new SessionOptions(3, BackendKind.HOST, Optional.empty(), home)));

  private Session session;

  @BeforeEach
  void take() {
    session = SHARED.get();
  }

  private long pid() {
    return session.ranks().get(1).pid();
  }

  /// Sends rank 1 a signal. A busy machine stops a process only when one of its threads is
  /// scheduled, so STOP waits until no thread runs.
  private void signal(String signal) throws IOException, InterruptedException {
    assertThat(new ProcessBuilder("kill", "-" + signal, "" + pid()).start().waitFor()).isZero();
    while (signal.equals("STOP") && !stopped()) {
      Thread.onSpinWait();
    }
  }

  private boolean stopped() {
    try (var threads = Files.newDirectoryStream(Path.of("/proc/" + pid() + "/task"))) {
      for (var thread : threads) {
        var status = Files.readString(thread.resolve("stat"));
        if (status.charAt(status.lastIndexOf(')') + 2) != 'T') {
          return false;
        }
      }
      return true;
    } catch (IOException e) {
      return false; // A thread has ended since it was listed.
    }
  }

  private Outcome run(String source) {
    return session.run(new Cell("a cell", source), new Recorded());
  }

  private RunningCell begin(String source, Recorded output) {
    return session.begin(new Cell("the cell", source), output);
  }

  private void usableAfterARestart() {
    assertThat(run("%restart").failure()).isEmpty();
    assertThat(run("world.barrier(); 6 * 7").result().orElseThrow().text()).isEqualTo("42");
  }

  static List<String> endless() {
    return Sweep.oneOf(
        2,
        List.of(
            "while (true) Thread.sleep(1000);",
            "while (true) world.barrier();",
            "while (true) System.out.println(\"x\".repeat(100));",
            "%%rank 1\nwhile (true) Thread.sleep(1000);"));
  }

  static List<String> cells() {
    return Sweep.oneOf(4, List.of("1 + 1", "%%rank 0\n1 + 1", "int declared = 5;", "%output diff"));
  }

  @Test
  void aFrozenRankIsReportedOnceAndWhenItAnswers() throws Exception {
    var begun = new CountDownLatch(1);
    var silent = new CountDownLatch(1);
    var again = new CountDownLatch(1);
    var output = new Recorded();
    output.onStdout = begun::countDown;
    output.onStderr =
        () -> {
          if (output.err.indexOf("has not answered") >= 0) {
            silent.countDown();
          }
          if (output.err.indexOf("answers again") >= 0) {
            again.countDown();
          }
        };
    var running =
        begin(
            "var go = new CountDownLatch(1);\n" + BEGUN + "go.await(1000, TimeUnit.SECONDS);",
            output);
    begun.await();
    long pid = pid();
    signal("STOP");
    silent.await();
    signal("CONT");
    again.await();
    running.interrupt();
    assertThat(running.await().failure().orElseThrow().cause()).isEqualTo(Cause.INTERRUPTED);
    assertThat(output.err.toString().lines().toList())
        .satisfiesExactly(
            line ->
                assertThat(line)
                    .matches(
                        "rank 1 \\(pid "
                            + pid
                            + "\\) has not answered for \\d+ s; its process is stopped; kill -CONT "
                            + pid
                            + " continues it"),
            line ->
                assertThat(line)
                    .matches("rank 1 \\(pid " + pid + "\\) answers again after \\d+ s"));
    assertThat(output.notices).containsExactlyElementsOf(output.err.toString().lines().toList());
    // No interrupt was sent while the rank was silent.
    assertThat(session.ranks().death()).isEmpty();
    assertThat(run("world.barrier(); 6 * 7").result().orElseThrow().text()).isEqualTo("42");
  }

  @Test
  void theTableOfRanksNeedsNoAnswer() throws Exception {
    signal("STOP");
    var lines = run("%ranks").result().orElseThrow().text().lines().toList();
    assertThat(lines).anyMatch(line -> line.contains("" + pid()) && line.contains("frozen: idle"));
    signal("CONT");
    assertThat(run("world.barrier(); 6 * 7").result().orElseThrow().text()).isEqualTo("42");
  }

  private CellFailure interruptedAfterStop(String source) throws Exception {
    var begun = new CountDownLatch(1);
    var output = new Recorded();
    output.onStdout = begun::countDown;
    var running = begin(source, output);
    begun.await();
    signal("STOP");
    running.interrupt();
    return running.await().failure().orElseThrow();
  }

  @ParameterizedTest
  @MethodSource("endless")
  void anInterruptEndsTheRankThatCannotStopAndNamesIt(String endless) throws Exception {
    long pid = pid();
    var header = endless.startsWith("%%") ? "%%rank 1\n" : "";
    var failure =
        interruptedAfterStop(header + "{ " + BEGUN + endless.substring(header.length()) + " }");
    assertThat(failure.message())
        .startsWith("the cell was interrupted")
        .endsWith("; rank 1 (pid " + pid + ") did not answer and was ended");
    assertThat(failure.cause()).isEqualTo(Cause.RANK_DIED);
    assertThat(failure.traceback()).last().isEqualTo("%restart starts new ranks.");
    usableAfterARestart();
  }

  /// The front needs an answer of the rank before any code of the cell runs, or only after it for
  /// the end of its output.
  @ParameterizedTest
  @MethodSource("cells")
  void aCellOfARankThatIsFrozenAlreadyEndsAtAnInterrupt(String source) throws Exception {
    var output = new Recorded();
    var reported = new CountDownLatch(1);
    long pid = pid();
    output.onStderr =
        () -> {
          if (output.err.indexOf("rank 1 (pid " + pid + ") has not answered for") >= 0) {
            reported.countDown();
          }
        };
    signal("STOP");
    var running = begin(source, output);
    reported.await();
    running.interrupt();
    var failure = running.await().failure().orElseThrow();
    assertThat(failure.message()).contains("rank 1 (pid " + pid + ")");
    usableAfterARestart();
  }

  /// Rank 0 fails, so the others must end: a rank that cannot respond is killed like one that does
  /// not.
  @Test
  void aFailureElsewhereIsReportedAndTheFrozenRankIsEnded(@TempDir Path folder) throws Exception {
    var begun = new CountDownLatch(1);
    var output = new Recorded();
    output.onStdout = begun::countDown;
    var running =
        begin(
            """
            {
              System.out.println("begun");
              if (world.rank() == 0) {
                while (!new File("%s", "stopped").exists()) Thread.onSpinWait();
                throw new IllegalStateException("mine");
              }
              world.barrier();
            }
            """
                .formatted(folder),
            output);
    begun.await();
    signal("STOP");
    Files.createFile(folder.resolve("stopped"));
    var failure = running.await().failure().orElseThrow();
    assertThat(failure.message()).isEqualTo("mine");
    assertThat(failure.traceback()).anyMatch(line -> line.contains("rank 1 did not stop"));
    usableAfterARestart();
  }
}
