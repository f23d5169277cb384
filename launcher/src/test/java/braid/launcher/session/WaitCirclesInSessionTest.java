package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cell.Cell;
import braid.model.BackendKind;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Ranks of a session that wait for each other, and messages of a rank to itself. Waits last 300 s
/// here, so a cell that ends within the time limit of a test ended because its circle was found.
class WaitCirclesInSessionTest {
  private static final int RANKS = 3;

  @TempDir static Path home;

  @RegisterExtension
  static final SharedSession SHARED =
      new SharedSession(
          () -> Session.start(new SessionOptions(RANKS, BackendKind.HOST, Optional.empty(), home)));

  private Session session;

  @BeforeEach
  void take() {
    session = SHARED.get();
    SHARED.result(
        """
        var a = world.subset("a", 0, 1);
        var b = world.subset("b", 0, 1);
        var c = world.subset("c", 1, 2);
        var all = Collectives.on(world);
        var x = SymmetricTensor.on(world).shape(4).dtype(FP32).name("x").allocate();
        """);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "a.barrier() | b.barrier() | rank 0 waits for rank 1 in barrier in group `a`, rank 1 waits for rank 0 in barrier in group `b`",
        "a.barrier() | all.receive(x, 0) | rank 0 waits for rank 1 in barrier in group `a`, rank 1 waits for rank 0 to send `x` 4 fp32",
        "world.barrier() | b.barrier() | rank 0 waits for rank 1 in barrier in group `world`, rank 1 waits for rank 0 in barrier in group `b`",
        "all.allReduce(x, x) | b.gather(1) | rank 0 waits for rank 1 in all-reduce in group `world`, rank 1 waits for rank 0 in gather of longs in group `b`",
      })
  void aCircleIsNamedAndTheNextCellRuns(String first, String second, String circle) {
    var failure =
        SHARED.failure(
            "switch (world.rank()) { case 0 -> %s; case 1 -> %s; default -> {} }"
                .formatted(first, second));
    assertThat(failure.message()).startsWith("ranks wait for each other: " + circle + "; ");
    assertThat(failure.traceback().getFirst()).startsWith("ranks 0, 1 failed in the cell, line 1");
  }

  @Test
  void aRankThatWaitsForACircleIsReleased() {
    var failure =
        SHARED.failure(
            "switch (world.rank()) { case 0 -> a.barrier(); case 1 -> b.barrier(); default -> c.barrier(); }");
    assertThat(failure.message()).startsWith("ranks wait for each other: ");
    assertThat(failure.traceback())
        .anyMatch(
            line -> line.startsWith("rank 2 waited for barrier in group `c` and was released"));
  }

  @Test
  void aCellThatCatchesItFailsAllTheSame() {
    SHARED.failure(
        "try { (world.rank() == 0 ? a : b).barrier(); } catch (BraidException e) { }"
            .replace("try {", "if (world.rank() < 2) try {"));
  }

  /// Only the thread that the cell has started can end the waits.
  @ParameterizedTest
  @ValueSource(
      strings = {
        "Thread.startVirtualThread(late);",
        "new Thread(late).start();",
        "CompletableFuture.runAsync(late);",
        "Executors.newScheduledThreadPool(1).schedule(() -> b.barrier(), 1500, TimeUnit.MILLISECONDS);",
      })
  void aThreadOfTheCellMayStillCome(String start) {
    SHARED.result(
        """
        Runnable late = () -> {
          try { Thread.sleep(1500); } catch (InterruptedException e) { return; }
          b.barrier();
        };
        """);
    SHARED.result(
        "switch (world.rank()) { case 0 -> { %s a.barrier(); } case 1 -> { b.barrier(); a.barrier(); } default -> {} }"
            .formatted(start));
    session.restart();
  }

  @Test
  void aMessageToItselfThatIsNotReceivedIsNotedOnce() {
    var output = new Recorded();
    var sent = session.run(new Cell("the cell", "all.send(x, world.rank());\n1 + 1"), output);
    assertThat(sent.failure()).isEmpty();
    assertThat(output.err.toString().lines())
        .hasSize(RANKS)
        .allMatch(
            line ->
                line.matches(
                    ".*note: rank (\\d) of group `world` has sent `x` 4 fp32 to itself and not received it; call receive\\(y, \\1\\)"));
    var later = new Recorded();
    assertThat(session.run(new Cell("later", "all.receive(x, world.rank());"), later).failure())
        .isEmpty();
    assertThat(later.err).isEmpty();
    var both = new Recorded();
    var source = "all.send(x, world.rank());\nall.receive(x, world.rank());";
    assertThat(session.run(new Cell("both", source), both).failure()).isEmpty();
    assertThat(both.err).isEmpty();
  }

  @Test
  void aStartedCollectiveThatIsNotAwaitedIsNotedOnce() {
    var output = new Recorded();
    var start = "var running = all.start(c -> c.allReduce(x, x));";
    assertThat(session.run(new Cell("the cell", start), output).failure()).isEmpty();
    assertThat(output.err.toString().lines())
        .hasSize(RANKS)
        .allMatch(
            line ->
                line.matches(
                    ".*note: rank \\d of group `world` has started chain all-reduce over copy_engine, on world and not awaited it; call await\\(\\) on the result of start\\(\\)"));
    var later = new Recorded();
    assertThat(session.run(new Cell("later", "running.await();"), later).failure()).isEmpty();
    assertThat(later.err).isEmpty();
  }

  /// The rank that awaits it fails at once, with the name of the rank that ended without it.
  @Test
  void aStartedCollectiveWithoutAnotherRankFails() {
    var failure =
        SHARED.failure(
            "if (world.rank() > 0) { var alone = all.start(c -> c.allReduce(x, x)); alone.await(); }");
    assertThat(failure.message()).contains("rank 0");
  }
}
