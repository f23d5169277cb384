package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.selftest.Sweep;
import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.launcher.cell.CellFailure.Cause;
import braid.launcher.cell.RunningCell;
import braid.launcher.fanout.FanOut;
import braid.model.BackendKind;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Consumer;
import jdk.jshell.spi.ExecutionControl.StoppedException;
import jdk.jshell.spi.ExecutionControl.UserException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Interrupts at every moment in the life of a cell. Each cell here that must be interrupted would
/// otherwise print `wrong` or never end.
class RunningCellTest {
  private static final String WRONG = "System.out.println(\"wrong\");\n";

  /// Statement of a `%%front` cell that runs the test's action.
  private static final String ACT = "((Runnable) System.getProperties().get(\"act\")).run();\n";

  @TempDir static Path home;

  @RegisterExtension
  static final SharedSession SHARED =
      new SharedSession(
          () -> Session.start(new SessionOptions(2, BackendKind.HOST, Optional.empty(), home)));

  private Session session;
  private final Recorded output = new Recorded();

  @BeforeEach
  void take() {
    session = SHARED.get();
  }

  @AfterEach
  void forgetAct() {
    System.getProperties().remove("act");
  }

  private static RunningCell cell(String source) {
    return new RunningCell(new Cell("the cell", source));
  }

  /// Waits for a cell that must have been interrupted, and must not harm the next one.
  private CellFailure interrupted(RunningCell cell) {
    var failure = cell.await().failure().orElseThrow();
    assertThat(failure.cause()).isEqualTo(Cause.INTERRUPTED);
    assertThat(output.out.toString()).doesNotContain("wrong");
    nextCellRuns();
    return failure;
  }

  private void nextCellRuns() {
    var next = session.run(new Cell("the next cell", "world.barrier(); 6 * 7"), new Recorded());
    assertThat(next.failure()).isEmpty();
    assertThat(next.result().orElseThrow().text()).isEqualTo("42");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "%%front\n", "%%rank 1\n", "%%no such magic\n"})
  void aCellThatIsInterruptedBeforeItsStartDoesNotBegin(String header) {
    for (var stop : List.<Consumer<RunningCell>>of(RunningCell::interrupt, RunningCell::kill)) {
      var cell = cell(header + WRONG);
      stop.accept(cell);
      session.begin(cell, output);
      assertThat(interrupted(cell).message()).isEqualTo("the cell was interrupted before it began");
    }
  }

  @Test
  void anInterruptOfAWaitingCellDoesNotReachTheRunningOne(@TempDir Path folder) throws Exception {
    var go = folder.resolve("go");
    var begun = new CountDownLatch(1);
    var watched = new Recorded();
    watched.onStdout = begun::countDown;
    var first = session.begin(new Cell("the first cell", untilThereIs(go)), watched);
    begun.await();
    var second = session.begin(new Cell("the second cell", WRONG), output);
    second.interrupt();
    assertThat(second.await().failure().orElseThrow().cause()).isEqualTo(Cause.INTERRUPTED);
    Files.createFile(go);
    assertThat(first.await().failure()).isEmpty();
    nextCellRuns();
    assertThat(output.out).isEmpty();
  }

  /// Returns code that prints a line and runs until there is such a file.
  private static String untilThereIs(Path file) {
    return "System.out.println(\"begun\");\nwhile (!new File(\"%s\").exists()) Thread.onSpinWait();"
        .formatted(file);
  }

  /// The test holds the compiler meanwhile.
  @Test
  void anInterruptBeforeTheCompilation() {
    var cell = cell(WRONG);
    session
        .compiler()
        .ask(
            () -> {
              session.begin(cell, output);
              while (!cell.isRunning()) {
                Thread.onSpinWait();
              }
              cell.interrupt();
              return cell;
            });
    interrupted(cell);
  }

  /// A class that no rank knows is asked for: the request would fail with that. A rank that fails
  /// long before the other one releases it, and only its session resumes it.
  @Test
  void anInterruptDuringTheCompilationSendsNothingToTheRanks() {
    var fanOut = new FanOut(CompletableFuture.completedFuture(session.ranks()));
    var cell = cell("");
    assertThat(cell.begin(fanOut::stop, fanOut::pending)).isTrue();
    fanOut.begin(cell);
    assertThatThrownBy(() -> fanOut.invoke("Unknown", "run")).isInstanceOf(UserException.class);
    assertThat(fanOut.takeLast()).isPresent();
    cell.interrupt();
    assertThatThrownBy(() -> fanOut.invoke("Unknown", "run")).isInstanceOf(StoppedException.class);
    assertThat(fanOut.takeLast()).isEmpty();
    session.restart();
  }

  /// JShell reports each statement on the cell's thread.
  @Test
  void anInterruptBetweenTwoStatements() {
    var cell = cell("System.out.println(\"first\");\n" + WRONG);
    var events = session.compiler().shell().onSnippetEvent(_ -> cell.interrupt());
    session.begin(cell, output);
    cell.await();
    session.compiler().shell().unsubscribe(events);
    interrupted(cell);
    assertThat(output.out).hasToString("first\n");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "while (true) { }",
        "Thread.sleep(Long.MAX_VALUE);",
        // Catches the first stop.
        "try { Thread.sleep(Long.MAX_VALUE); } catch (Exception e) { } Thread.sleep(Long.MAX_VALUE);",
      })
  void anInterruptDuringAStep(String endless) throws Exception {
    var cell = cell("{ System.out.println(\"begun\"); " + endless + " }\n" + WRONG);
    var begun = new CountDownLatch(1);
    output.onStdout = begun::countDown;
    session.begin(cell, output);
    begun.await();
    assertThat(cell.pending()).containsExactly(0, 1);
    cell.interrupt();
    interrupted(cell);
  }

  @Test
  void anInterruptOfARestartedSessionReachesTheNewRanks() throws Exception {
    var cell = cell("%restart\nSystem.out.println(\"begun\");\nwhile (true) { }");
    var begun = new CountDownLatch(1);
    output.onStdout =
        () -> {
          if (output.out.indexOf("begun") >= 0) {
            begun.countDown();
          }
        };
    session.begin(cell, output);
    begun.await();
    cell.interrupt();
    interrupted(cell);
  }

  /// The cell interrupts itself, so it is certainly in that statement.
  @ParameterizedTest
  @ValueSource(
      strings = {
        ACT,
        ACT + "Thread.sleep(Long.MAX_VALUE);\n",
        "{ " + ACT + "while (true) { } }\n",
        "{ " + ACT + "Thread.sleep(Long.MAX_VALUE); }\n",
        // Catches the first stop.
        "{ "
            + ACT
            + "try { Thread.sleep(Long.MAX_VALUE); } catch (InterruptedException e) { }"
            + " Thread.sleep(Long.MAX_VALUE); }\n",
      })
  void anInterruptDuringAFrontCell(String source) {
    var cell = cell("%%front\n" + source + WRONG);
    System.getProperties().put("act", (Runnable) cell::interrupt);
    session.begin(cell, output);
    interrupted(cell);
  }

  /// Interrupts from the call that delivers the last output, after the last statement. The
  /// session's clock may deliver it earlier; so this runs until the end of the cell did.
  @Test
  void anInterruptAtTheVeryEndDoesNothing() {
    var atTheEnd = new CountDownLatch(1);
    while (atTheEnd.getCount() > 0) {
      var cell = cell("%%time\n1 + 1");
      var last = new Recorded();
      last.onStdout =
          () -> {
            if (Thread.currentThread().getName().equals("run the cell")) {
              cell.interrupt();
              cell.kill();
              atTheEnd.countDown();
            }
          };
      session.begin(cell, last);
      assertThat(cell.await().failure()).isEmpty();
      nextCellRuns();
    }
  }

  @Test
  void anInterruptAfterTheEndDoesNotReachTheNextCell(@TempDir Path folder) throws Exception {
    var go = folder.resolve("go");
    for (var header : new String[] {"", "%%front\n"}) {
      var ended = cell(header + "1 + 1");
      session.begin(ended, output);
      assertThat(ended.await().failure()).isEmpty();
      var begun = new CountDownLatch(1);
      output.onStdout = begun::countDown;
      var next = session.begin(new Cell("the next cell", header + untilThereIs(go)), output);
      begun.await();
      ended.interrupt();
      ended.kill();
      assertThat(ended.isInterrupted() || ended.isKilled()).isFalse();
      assertThat(ended.pending()).isEmpty();
      Files.createFile(go);
      assertThat(next.await().failure()).isEmpty();
      Files.delete(go);
    }
  }

  /// No cell here ends alone, so a lost interrupt would never end; an interrupt that reached two
  /// cells would end an ordinary one. The pause before each interrupt is random.
  @Test
  void eachInterruptEndsExactlyOneCell() throws Exception {
    long seed = Long.getLong("braid.seed", ThreadLocalRandom.current().nextLong());
    System.out.println("seed " + seed);
    var random = new Random(seed);
    var announced = new SynchronousQueue<RunningCell>();
    var sources =
        new String[] {
          "while (true) { }",
          "int a = 1;\nint b = a + 1;\nThread.sleep(Long.MAX_VALUE);",
          "while (true) world.barrier();",
          "%%front\nwhile (true) { }",
          "%%rank 1\nwhile (true) Thread.onSpinWait();",
          "%%front\nint n = 1;\nThread.sleep(Long.MAX_VALUE);",
        };
    int cells = Sweep.times(5, 20) * sources.length;
    var interrupter =
        Thread.ofPlatform()
            .daemon()
            .start(
                () -> {
                  try {
                    for (int i = 0; i < cells; i++) {
                      var cell = announced.take();
                      for (int spins = 1 << random.nextInt(24); spins > 0; spins--) {
                        Thread.onSpinWait();
                      }
                      cell.interrupt();
                    }
                  } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                  }
                });
    for (int i = 0; i < cells; i++) {
      var cell = cell(sources[i % sources.length]);
      announced.put(cell);
      session.begin(cell, output);
      interrupted(cell);
    }
    interrupter.join();
    assertThat(session.ranks().death()).isEmpty();
  }
}
