package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.launcher.cell.CellFailure.Cause;
import braid.launcher.cell.Outcome;
import braid.launcher.cell.RunningCell;
import braid.model.BackendKind;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Cells that do not end alone, and the effect of interrupts on them.
class InterruptTest {
  /// Returns a cell of one statement that prints and then runs the code, so that an interrupt after
  /// the print arrives while that statement runs.
  private static String begun(String code) {
    return "{\n  System.out.println(\"begun\");\n  " + code + "\n}";
  }

  /// Expression that ignores interrupts and has no loop of its own.
  private static final String DEAF = "new CompletableFuture<String>().join();";

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

  private Outcome run(String source) {
    return session.run(new Cell("a cell", source), new Recorded());
  }

  private String result(String source) {
    var outcome = run(source);
    assertThat(outcome.failure()).isEmpty();
    return outcome.result().orElseThrow().text();
  }

  /// Begins a cell, and waits until it prints or ends.
  private RunningCell begin(String source) throws InterruptedException {
    var begun = new CountDownLatch(1);
    var output = new Recorded();
    output.input = null;
    output.onStdout = begun::countDown;
    var running = session.begin(new Cell("the cell", source), output);
    var _ = running.outcome().whenComplete((_, _) -> begun.countDown());
    begun.await();
    return running;
  }

  private CellFailure interrupted(String source) throws Exception {
    var running = begin(source);
    running.interrupt();
    return running.await().failure().orElseThrow();
  }

  /// Waits for a condition, or until the cell has ended and can no longer reach it.
  private static void await(RunningCell running, BooleanSupplier happened) {
    while (running.isRunning() && !happened.getAsBoolean()) {
      Thread.onSpinWait();
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "while (true) { }",
        "while (true) try { Thread.sleep(50); } catch (InterruptedException e) { }",
        "try { Thread.sleep(Long.MAX_VALUE); } catch (Exception e) { throw new RuntimeException(e); }",
        "synchronized (world) { world.wait(); }",
        "new ArrayBlockingQueue<String>(1).take();",
        "java.util.concurrent.locks.LockSupport.park();",
        "new ProcessBuilder(\"sleep\", \"600\").start().waitFor();",
        "if (world.rank() == 0) new Scanner(System.in).nextLine(); else world.barrier();",
        "var pool = Executors.newSingleThreadExecutor(); pool.submit(() -> { while (true) { } }).get();",
      })
  void anInterruptEndsAnyCellAndKeepsDeclarations(String endless) throws Exception {
    run("int kept = 41;");
    var failure = interrupted(begun(endless));
    assertThat(failure.cause()).isEqualTo(Cause.INTERRUPTED);
    assertThat(failure.message()).startsWith("the cell was interrupted").doesNotContain("twice");
    assertThat(result("world.barrier(); kept + 1")).isEqualTo("42");
    assertThat(session.ranks().death()).isEmpty();
    if (endless.contains("pool")) {
      // Its threads run until their ranks end.
      session.restart();
    }
  }

  /// Rank 2 keeps a thread that may still arrive, so the wait does not end alone. The interrupt
  /// follows once both ranks wait.
  @Test
  void aWaitForARankThatTakesNoPartEndsAndIsNamed(@TempDir Path folder) throws Exception {
    result(
        """
        if (world.rank() == 2) {
          Thread.ofPlatform().daemon().start(() -> { while (true) LockSupport.park(); });
        }
        void tellOnceBothWait() {
          var waits = braid.internal.context.RankContext.current().waits();
          var other = new File("%s", "rank1");
          Thread.ofPlatform().daemon().start(() -> {
            while (waits.current().isEmpty()) Thread.onSpinWait();
            if (world.rank() == 1) other.mkdir();
            while (!other.exists()) Thread.onSpinWait();
            System.out.println("both wait");
          });
        }
        0
        """
            .formatted(folder)
            .replace("LockSupport", "java.util.concurrent.locks.LockSupport"));
    assertThat(interrupted("%%rank 0,1\ntellOnceBothWait();\nworld.barrier();").traceback())
        .containsExactly(
            "the cell was interrupted, line 3",
            "ranks 0, 1 waited for barrier in group `world` and were released.");
    assertThat(
            interrupted(
                    """
                    var pipe = Pipeline.on(world).gemm(GemmSpec.allGatherGemm(192, 64, 64)).build();
                    System.out.println("begun");
                    if (world.rank() != 1) pipe.run(); else Thread.sleep(Long.MAX_VALUE);
                    """)
                .cause())
        .isEqualTo(Cause.INTERRUPTED);
    assertThat(result("world.barrier(); 6 * 7")).isEqualTo("42");
    session.restart();
  }

  /// Looks for streams whose thread runs a task.
  @Test
  void aCellIsOverOnlyWhenStreamsAreQuietSoThatTheNextMeasuresItselfAlone() throws Exception {
    run(
        """
        List<String> streams(boolean busy) {
          return Thread.getAllStackTraces().entrySet().stream()
              .filter(t -> Arrays.stream(t.getValue()).anyMatch(f -> f.getClassName().endsWith(".WorkQueue")))
              .filter(t -> !busy || Arrays.stream(t.getValue()).map(f -> f.getClassName()).anyMatch(c -> c.startsWith("braid.") && !c.contains(".WorkQueue")))
              .map(t -> t.getKey().getName()).toList();
        }
        var pipe = Pipeline.on(world).gemm(GemmSpec.allGatherGemm(1536, 512, 512)).overlap(Overlap.pipelined(4)).build();
        """);
    var failure = interrupted("pipe.run();\n" + begun("while (true) pipe.run();"));
    assertThat(failure.cause()).isEqualTo(Cause.INTERRUPTED);
    assertThat(result("streams(true)")).isEqualTo("[]");
    assertThat(result("streams(false).size() > 1")).isEqualTo("true");
    assertThat(
            run("""
                    var after = Pipeline.on(world).gemm(GemmSpec.allGatherGemm(384, 64, 64)).build();
                    after.input().fillIntegers(1);
                    after.weight().fillIntegers(2);
                    after.run();
                    after.verify();
                    """)
                .failure())
        .isEmpty();
  }

  @Test
  void theTunerIsInterruptedToo() throws Exception {
    var failure =
        interrupted(
            begun(
                "Tuner.on(world).gemm(GemmSpec.allGatherGemm(768, 256, 256)).repeats(10_000).run();"));
    assertThat(failure.cause()).isEqualTo(Cause.INTERRUPTED);
    assertThat(result("world.barrier(); 6 * 7")).isEqualTo("42");
  }

  @Test
  void interruptingAgainAndAgainIsNoMoreThanOnce() throws Exception {
    run("int kept = 41;");
    var running = begin(begun("while (true) { }"));
    for (int i = 0; i < 20; i++) {
      running.interrupt();
    }
    assertThat(running.await().failure().orElseThrow().cause()).isEqualTo(Cause.INTERRUPTED);
    assertThat(result("kept + 1")).isEqualTo("42");
  }

  /// Rank 1 prints once the others wait and are past everything that an interrupt could end.
  @Test
  void killingACellStartsNewRanksIfOneDoesNotStop(@TempDir Path folder) throws Exception {
    run("int kept = 41;");
    var pids = session.ranks().all().stream().map(rank -> rank.pid()).toList();
    var running =
        begin(
            """
            var waits = braid.internal.context.RankContext.current().waits();
            if (world.rank() == 1) {
              while (!new File("%1$s", "0").exists() || !new File("%1$s", "2").exists()) Thread.onSpinWait();
              System.out.println("the others wait");
              %2$s
            } else {
              Thread.ofPlatform().daemon().start(() -> {
                while (waits.current().isEmpty()) Thread.onSpinWait();
                new File("%1$s", "" + world.rank()).mkdir();
              });
              world.barrier();
            }
            """
                .formatted(folder, DEAF));
    running.interrupt();
    await(running, () -> running.pending().equals(List.of(1)));
    assertThat(running.outcome()).isNotDone();
    running.kill();
    var failure = running.await().failure().orElseThrow();
    assertThat(failure.cause()).isEqualTo(Cause.INTERRUPTED);
    assertThat(failure.traceback())
        .containsExactly(
            "the cell, line 2, was interrupted twice: rank 1 did not stop; the ranks were ended and new ones started; all declarations are lost",
            "ranks 0, 2 waited for barrier in group `world` and were released.");
    assertThat(result("world.barrier(); 6 * 7")).isEqualTo("42");
    assertThat(run("kept").failure().orElseThrow().cause()).isEqualTo(Cause.COMPILE);
    assertThat(session.ranks().all()).noneMatch(rank -> pids.contains(rank.pid()));
  }

  /// A second interrupt loses nothing if the ranks stop after a moment.
  @Test
  void killingACellKeepsRanksThatStop() throws Exception {
    run("int kept = 41;");
    var running = begin(begun("while (true) { }"));
    running.interrupt();
    running.kill();
    var failure = running.await().failure().orElseThrow();
    assertThat(failure.message()).startsWith("the cell was interrupted").doesNotContain("twice");
    assertThat(result("kept + 1")).isEqualTo("42");
  }
}
