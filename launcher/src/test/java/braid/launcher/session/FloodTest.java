package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure.Cause;
import braid.launcher.cell.CellOutput;
import braid.launcher.machine.BackendChoice;
import braid.launcher.output.OutputLimit;
import braid.model.BackendKind;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Cells that print more than is useful to show.
class FloodTest {
  private static final String LIMIT = "--output-limit 256KiB";
  private static final String NOTE = "… much output";
  private static final int LIMIT_BYTES = 256 << 10;

  /// Bytes that the notes of the session may take.
  private static final int NOTES_BYTES = 2000;

  private Session session;

  @BeforeEach
  void start(@TempDir Path home) {
    session =
        Session.start(
            new SessionOptions(
                    3,
                    new BackendChoice(BackendKind.HOST, "as the test says"),
                    Optional.empty(),
                    home)
                .outputLimit(OutputLimit.parse("256KiB")));
  }

  @AfterEach
  void close() {
    session.close();
  }

  private String result(String source) {
    var outcome = session.run(new Cell("a cell", source), new Recorded());
    assertThat(outcome.failure()).isEmpty();
    return outcome.result().orElseThrow().text();
  }

  private static int length(Recorded output) {
    return output.out.length() + output.err.length();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "while (true) System.err.println(\"x\".repeat(100));",
        "while (true) System.out.println(\"x\".repeat(100));",
        "while (true) System.out.print(\"x\".repeat(100));",
        "while (true) { System.out.println(world.rank()); System.err.println(1); }",
        """
        var pool = Executors.newFixedThreadPool(3);
        for (int i = 0; i < 3; i++) pool.submit(() -> { while (true) System.out.println("x"); });
        while (true) Thread.onSpinWait();
        """,
        "%%output all\nwhile (true) System.out.println(\"x\".repeat(100));",
        "%%output first\nwhile (true) System.out.println(\"x\".repeat(100));",
        "%%rank 1\nwhile (true) System.out.println(\"x\".repeat(100));",
        "%%front\nwhile (true) System.out.println(\"x\".repeat(100));",
        "%%front\nwhile (true) System.err.print(\"x\");",
        """
        var yes = new ProcessBuilder("yes").inheritIO().start();
        try { yes.waitFor(); } finally { yes.destroyForcibly(); }
        """,
      })
  void aFloodIsCutAndEndsAtOneInterrupt(String flood) throws Exception {
    var output = new Recorded();
    var much = new CountDownLatch(1);
    Runnable look =
        () -> {
          if (output.out.indexOf(NOTE) >= 0 || output.err.indexOf(NOTE) >= 0) {
            much.countDown();
          }
        };
    output.onStdout = look;
    output.onStderr = look;
    var running = session.begin(new Cell("the cell", flood), output);
    much.await();
    running.interrupt();
    assertThat(running.await().succeeded()).isFalse();
    assertThat(length(output)).isLessThan(LIMIT_BYTES + NOTES_BYTES);
    assertThat(result("world.barrier(); 6 * 7")).isEqualTo("42");
  }

  @Test
  void theFirstAndTheLastLinesAreThereAndEveryOtherIsCounted() {
    var output = new Recorded();
    session.run(
        new Cell("a cell", "for (int i = 0; i < 200_000; i++) System.out.println(\"line \" + i);"),
        output);
    assertThat(output.out.toString()).startsWith("line 0\nline 1\n").endsWith("\nline 199999\n");
    var count =
        java.util.regex.Pattern.compile("… ([0-9,]+) bytes in ([0-9,]+) lines left out")
            .matcher(output.out);
    assertThat(count.find()).isTrue();
    long kept = output.out.toString().lines().filter(line -> line.startsWith("line ")).count();
    assertThat(kept + Long.parseLong(count.group(2).replace(",", ""))).isEqualTo(200_000);
  }

  @Test
  void displaysAreCutToo() {
    var output = new Recorded();
    session.run(new Cell("a cell", "for (int i = 0; i < 3000; i++) display(i);"), output);
    assertThat(output.shown).hasSize(256).startsWith("0", "1", "2").endsWith("2998", "2999");
    assertThat(output.err).contains("… 2,744 displays left out; " + LIMIT);
  }

  @Test
  void theLimitIsSetForOneCellOrForAll() {
    var print = "System.out.print(\"x\".repeat(1_000_000) + \"end\");";
    var output = new Recorded();
    session.run(new Cell("a cell", "%%output-limit 2MiB\n" + print), output);
    assertThat(output.out.length()).isEqualTo(1_000_003);
    output.out.setLength(0);
    session.run(new Cell("a cell", print), output);
    assertThat(output.out.toString()).hasSizeLessThan(LIMIT_BYTES + NOTES_BYTES).endsWith("end");
    output.out.setLength(0);
    session.run(new Cell("a cell", "%output-limit 2MiB\n" + print), output);
    session.run(new Cell("a cell", print), output);
    assertThat(output.out.toString())
        .startsWith("output limit is 2MiB per cell\n")
        .hasSize(2_000_036);
    var failure =
        session.run(new Cell("a cell", "%output-limit lots"), output).failure().orElseThrow();
    assertThat(failure.message()).startsWith("--output-limit must be").contains("lots");
  }

  /// A slow client holds the ranks back and misses nothing, and an interrupt still works.
  @Test
  void aSlowClientHoldsRanksBack() throws Exception {
    var taken = new AtomicLong();
    var first = new CountDownLatch(1);
    var goOn = new CountDownLatch(1);
    var slow =
        new CellOutput() {
          @Override
          public void stdout(String text) {
            taken.addAndGet(text.length());
            first.countDown();
            try {
              goOn.await();
            } catch (InterruptedException e) {
              Thread.currentThread().interrupt();
            }
          }
        };
    var whole = "%%output-limit 1GiB\n%%rank 0\n";
    var print = "System.out.println(\"x\".repeat(999));";
    var all =
        session.begin(
            new Cell("the cell", whole + "for (int i = 0; i < 64_000; i++) " + print), slow);
    first.await();
    goOn.countDown();
    assertThat(all.await().failure()).isEmpty();
    assertThat(taken).hasValue(64_000_000);
    var endless = session.begin(new Cell("the cell", whole + "while (true) " + print), slow);
    while (taken.get() == 64_000_000) {
      Thread.onSpinWait();
    }
    endless.interrupt();
    assertThat(endless.await().failure().orElseThrow().cause()).isEqualTo(Cause.INTERRUPTED);
    assertThat(result("world.barrier(); 6 * 7")).isEqualTo("42");
  }

  /// Output of a thread of an earlier cell belongs to the running cell and counts towards its
  /// limit.
  @Test
  void aFloodThatOutlivesItsCellHarmsNoLaterOne() {
    session.run(
        new Cell(
            "a cell",
            """
            var stop = new java.util.concurrent.atomic.AtomicBoolean();
            Thread.startVirtualThread(() -> { while (!stop.get()) System.out.println("x"); });
            """),
        new Recorded());
    for (int i = 0; i < 5; i++) {
      var output = new Recorded();
      var outcome = session.run(new Cell("a cell", "world.barrier(); 6 * 7"), output);
      assertThat(outcome.result().orElseThrow().text()).isEqualTo("42");
      assertThat(length(output)).isLessThan(2 * LIMIT_BYTES);
    }
    result("stop.set(true); 1");
  }
}
