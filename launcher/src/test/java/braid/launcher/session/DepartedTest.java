package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.selftest.Sweep;
import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.model.BackendKind;
import java.nio.file.Path;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Ranks that wait for ranks which have ended the cell. Waits last 300 s here, so a cell that ends
/// within the time limit of a test ended because the front saw that no other rank can arrive.
class DepartedTest {
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
  }

  private static void assertNames(CellFailure failure, String failed, int line, String call) {
    assertThat(failure.message())
        .contains(call)
        .contains("ended the cell and cannot come any more");
    assertThat(failure.traceback().getFirst())
        .startsWith(failed)
        .contains("failed in the cell, line " + line);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "world.barrier();                             | barrier in group `world`",
        "world.broadcast(1.0, 1);                     | broadcast of a double from rank 1 in group `world`",
        "world.gather(\"x\");                         | gather of strings in group `world`",
        "SymmetricTensor.on(world).shape(4, 8).dtype(FP32).allocate(); | allocate",
        "Collectives.on(world);                       | set up collectives in group `world`",
        "Pipeline.on(world).gemm(GemmSpec.allGatherGemm(48, 32, 16)).build(); | build a pipeline",
        "world.subset(\"pair\", 0, 2).barrier();      | barrier in group `pair`",
      })
  void aMeetingThatOthersHaveLeftEnds(String call, String name) {
    var failure = SHARED.failure("int before = 1;\nif (world.rank() == 0) {\n  " + call + "\n}");
    assertNames(failure, "rank 0", 3, name);
    assertThat(failure.message())
        .contains(name.contains("pair") ? "but rank 2 ended" : "but ranks 1, 2 ended");
  }

  @Test
  void theRanksThatWaitAreNamedTogether() {
    var failure = SHARED.failure("if (world.rank() != 1)\n  world.barrier();");
    assertNames(failure, "ranks 0, 2", 2, "barrier in group `world`");
    assertThat(failure.message()).contains("but rank 1 ended");
  }

  @Test
  void ranksThatDoNotRunTheCellCannotComeEither() {
    var failure = SHARED.failure("%%rank 1\nworld.barrier();");
    assertNames(failure, "rank 1", 2, "barrier in group `world`");
    assertThat(failure.message()).contains("but ranks 0, 2 ended");
  }

  /// Waits in shared memory, which the store does not see.
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "all.allReduce(x);      | `world`",
        "all.receive(x, 1);     | rank 1 to send",
        "all.send(x, 1);        | rank 1 to receive",
        "pipe.run();            | begun[1] from rank 1",
        "pipe.verify();         | waited for",
        "Tuner.on(world).gemm(GemmSpec.allGatherGemm(48, 32, 16)).run(); | `world`",
      })
  void aSignalThatNobodyWillRaiseEndsTheWait(String call, String name) {
    SHARED.result(
        """
        var x = SymmetricTensor.on(world).shape(3, 8).dtype(FP32).allocate();
        var all = Collectives.on(world);
        var pipe = Pipeline.on(world).gemm(GemmSpec.allGatherGemm(48, 32, 16)).build();
        all.allReduce(x);
        pipe.run();
        """);
    var failure = SHARED.failure("if (world.rank() == 0)\n  " + call);
    assertNames(failure, "rank 0", 2, name);
    assertThat(failure.message()).containsPattern("but ranks? 1(, 2)? ended");
    var next = "var p = Pipeline.on(world).gemm(GemmSpec.allGatherGemm(48, 32, 16)).build();";
    assertThat(SHARED.result(next + " p.run(); p.verify(); 6 * 7")).isEqualTo("42");
  }

  /// The calls of the ranks differ then, so the cell must fail.
  @Test
  void aCellThatCatchesItFailsAllTheSame() {
    var failure =
        SHARED.failure(
            "if (world.rank() == 0) try { world.barrier(); } catch (BraidException e) { }");
    assertThat(failure.message()).contains("barrier in group `world` but ranks 1, 2 ended");
  }

  /// Rank 1 has ended the cell but still arrives.
  @ParameterizedTest
  @ValueSource(
      strings = {
        "Thread.startVirtualThread(late);",
        "new Thread(late).start();",
        "CompletableFuture.runAsync(late);",
        "Executors.newScheduledThreadPool(1).schedule(world::barrier, 700, TimeUnit.MILLISECONDS);",
        "CompletableFuture.runAsync(world::barrier, CompletableFuture.delayedExecutor(700, TimeUnit.MILLISECONDS));",
      })
  void aThreadThatTheCellLeavesBehindMayStillCome(String start) {
    SHARED.result(
        """
        Runnable late = () -> {
          try { Thread.sleep(700); } catch (InterruptedException e) { return; }
          world.barrier();
        };
        """);
    SHARED.result("if (world.rank() == 1) { " + start + " } else { world.barrier(); }");
    SHARED.result("world.barrier();");
    // While a pool of rank 1 keeps its threads, that rank may come to any barrier.
    session.restart();
  }

  /// A late rank does not count as departed, whatever the other ranks do meanwhile.
  @Test
  void ranksThatAreLateAreWaitedFor() {
    long seed = 20261122;
    var random = new Random(seed);
    SHARED.result(
        """
        var pairs = new ProcessGroup[] {
          world.subset("without0", 1, 2), world.subset("without1", 0, 2), world.subset("without2", 0, 1)};
        """);
    for (int i = 0; i < Sweep.times(6, 20); i++) {
      int gone = random.nextInt(RANKS);
      int late = (gone + 1 + random.nextInt(RANKS - 1)) % RANKS;
      int skew = random.nextInt(400);
      var source =
          """
          if (world.rank() != %1$d) {
            if (world.rank() == %2$d) Thread.sleep(%3$d);
            var pair = pairs[%1$d];
            pair.barrier();
            var t = SymmetricTensor.on(pair).shape(2, 4).dtype(FP32).allocate();
            Collectives.on(pair).allReduce(t);
            if (world.rank() == %2$d) Thread.sleep(%3$d / 2);
            Collectives.on(pair).allReduce(t);
            t.close();
          }
          """
              .formatted(gone, late, skew);
      var outcome = session.run(new Cell("cell " + i, source), new Recorded());
      assertThat(outcome.failure()).as("seed %d, cell %d:\n%s", seed, i, source).isEmpty();
    }
    SHARED.result("world.barrier();");
  }
}
