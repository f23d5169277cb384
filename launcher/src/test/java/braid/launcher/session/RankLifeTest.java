package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.internal.selftest.Sweep;
import braid.internal.shared.SharedFile;
import braid.launcher.FrontJvm;
import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure.Cause;
import braid.launcher.cell.Outcome;
import braid.model.BackendKind;
import braid.model.BraidException;
import braid.natives.cuda.Gpu;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Deaths of ranks and fronts, and their remains.
class RankLifeTest {
  private static final int RANKS = 3;

  /// A collective that rank 1 never enters: the other ranks wait in it.
  private static final String STUCK =
      """
      System.out.println("begun");
      if (world.rank() == 1) Thread.sleep(Long.MAX_VALUE); else world.barrier();
      """;

  @TempDir Path home;

  private Session start() {
    return Session.start(new SessionOptions(RANKS, BackendKind.HOST, Optional.empty(), home));
  }

  private static void kill9(long pid) throws IOException, InterruptedException {
    assertThat(new ProcessBuilder("kill", "-9", Long.toString(pid)).start().waitFor()).isZero();
  }

  private static Outcome run(Session session, String code) {
    return session.run(new Cell("the cell", code), new Recorded());
  }

  /// Returns the start of the names of all shared files of the rank's session.
  private static String sharedPrefix(ProcessHandle rank) throws IOException {
    var name = "BRAID_TOKEN=";
    var environment = Files.readString(Path.of("/proc/" + rank.pid() + "/environ"));
    var token =
        Arrays.stream(environment.split("\0", -1))
            .filter(each -> each.startsWith(name))
            .findFirst()
            .orElseThrow();
    return SharedFile.prefix(token.substring(name.length()));
  }

  private static List<Path> sharedFiles(String prefix) throws IOException {
    try (var files = Files.list(Path.of("/dev/shm"))) {
      return files.filter(f -> f.getFileName().toString().startsWith(prefix)).toList();
    }
  }

  /// The next cell starts before or after the front has seen the death.
  @Test
  void aRankKilledJustBeforeACellIsNamedByIt() throws Exception {
    try (var session = start()) {
      for (int i = 0; i < Sweep.times(2, 5); i++) {
        kill9(session.ranks().get(2).pid());
        var failure = run(session, "1 + " + i).failure().orElseThrow();
        assertThat(failure.cause()).isEqualTo(Cause.RANK_DIED);
        assertThat(failure.message()).startsWith("rank 2 ").contains("SIGKILL");
        var again = run(session, "1").failure().orElseThrow();
        assertThat(again.cause()).isEqualTo(Cause.RANK_DIED);
        assertThat(run(session, "%restart").failure()).isEmpty();
        assertThat(run(session, "1").result().orElseThrow().text()).isEqualTo("1");
      }
    }
  }

  @Test
  void aRankKilledInACollectiveFailsTheCellFreesTheOthersAndRestartBringsNewOnes()
      throws Exception {
    try (var session = start()) {
      var begun = new CountDownLatch(1);
      var output = new Recorded();
      output.onStdout = begun::countDown;
      var outcome =
          CompletableFuture.supplyAsync(() -> session.run(new Cell("cell 1", STUCK), output));
      begun.await();
      long victim = session.ranks().get(1).pid();
      kill9(victim);
      var failure = outcome.get().failure().orElseThrow();
      assertThat(failure.cause()).isEqualTo(Cause.RANK_DIED);
      assertThat(failure.message())
          .startsWith(
              "rank 1 (pid " + victim + ") was killed by SIGKILL (signal 9) while cell 1 ran");
      assertThat(failure.traceback())
          .anyMatch(l -> l.startsWith("ranks 0, 2 waited for") && l.contains("barrier"));
      var next = session.run(new Cell("cell 2", "1 + 1"), new Recorded());
      assertThat(next.failure().orElseThrow().message()).contains("%restart");
      assertThat(session.run(new Cell("cell 3", "%restart"), new Recorded()).failure()).isEmpty();
      assertThat(
              session
                  .run(new Cell("cell 4", "world.barrier(); 6 * 7"), new Recorded())
                  .result()
                  .orElseThrow()
                  .text())
          .isEqualTo("42");
    }
  }

  @Test
  void aRankThatDiesBetweenCellsIsReportedByTheNext() throws Exception {
    try (var session = start()) {
      var reported = new CountDownLatch(1);
      var before = new Recorded();
      before.onStderr = reported::countDown;
      assertThat(session.run(new Cell("cell 0", "1 + 1"), before).failure()).isEmpty();
      kill9(session.ranks().get(2).pid());
      reported.await();
      assertThat(before.err.toString()).startsWith("rank 2").contains("%restart");
      var failure =
          session.run(new Cell("cell 1", "1 + 1"), new Recorded()).failure().orElseThrow();
      assertThat(failure.cause()).isEqualTo(Cause.RANK_DIED);
      assertThat(failure.message()).startsWith("rank 2").contains("%restart");
    }
  }

  @Test
  void aRankThatEndsItselfIsNotTakenForAResult() {
    try (var session = start()) {
      var failure =
          session
              .run(new Cell("cell 1", "System.exit(7);"), new Recorded())
              .failure()
              .orElseThrow();
      assertThat(failure.cause()).isEqualTo(Cause.RANK_DIED);
      assertThat(failure.message())
          .matches(
              "ranks 0, 1, 2 \\(pids \\d+, \\d+, \\d+\\) exited with code 7 while cell 1 ran.*");
    }
  }

  /// A child keeps the rank's pipes open, so reading them never ends.
  @Test
  void aRankThatDiesBeforeItsChildIsReportedAllTheSame() throws Exception {
    try (var session = start()) {
      var output = new Recorded();
      var failure =
          session
              .run(
                  new Cell(
                      "cell 1",
                      """
                      var child = new ProcessBuilder("sleep", "600").inheritIO().start();
                      System.out.println(child.pid());
                      Runtime.getRuntime().halt(3);
                      """),
                  output)
              .failure()
              .orElseThrow();
      assertThat(failure.cause()).isEqualTo(Cause.RANK_DIED);
      assertThat(failure.message()).contains("exited with code 3");
      // The front does not wait long for output, so a number may be missing.
      for (var line : output.out.toString().lines().toList()) {
        kill9(Long.parseLong(line.replaceAll("\\[\\d] ", "")));
      }
    }
  }

  @Test
  void closingLeavesNoProcess() throws Exception {
    var session = start();
    var pids = session.ranks().all().stream().map(r -> r.pid()).toList();
    session.close();
    session.close();
    assertThat(pids)
        .noneMatch(pid -> ProcessHandle.of(pid).map(ProcessHandle::isAlive).orElse(false));
  }

  /// A front in a separate process, to be killed: prints the pids of its ranks, then waits in a
  /// collective.
  public static final class Front {
    private Front() {}

    public static void main(String[] args) {
      var session =
          Session.start(
              new SessionOptions(RANKS, BackendKind.HOST, Optional.empty(), Path.of(args[0])));
      session.ranks().all().forEach(r -> System.out.println(r.pid()));
      var output = new Recorded();
      output.onStdout = () -> System.out.println("begun");
      var outcome = session.run(new Cell("cell 1", STUCK), output);
      System.out.println(outcome);
    }
  }

  @Test
  void kernelTrap12_aKilledFrontLeavesNoRankAndNoSharedFile() throws Exception {
    var command = new ArrayList<>(FrontJvm.command());
    command.addAll(List.of(Front.class.getName(), home.toString()));
    var front = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    var ranks = new ArrayList<ProcessHandle>();
    String prefix;
    try (var output =
        new BufferedReader(new InputStreamReader(front.getInputStream(), StandardCharsets.UTF_8))) {
      for (var line = output.readLine();
          line != null && !line.equals("begun");
          line = output.readLine()) {
        ranks.add(ProcessHandle.of(Long.parseLong(line)).orElseThrow());
      }
      assertThat(ranks).hasSize(RANKS);
      prefix = sharedPrefix(ranks.getFirst());
      kill9(front.pid());
      for (var rank : ranks) {
        rank.onExit().get();
      }
    }
    assertThat(sharedFiles(prefix)).isEmpty();
  }

  @Test
  void filesOfKilledSessionsAreRemovedAndFailedSweepsAreHarmless() throws Exception {
    var shared = Path.of("/dev/shm");
    var leftover = Files.createTempFile(shared, "braid-000000000000-", "");
    var stays = Files.createTempDirectory(shared, "braid-000000000001-");
    try (var session = start()) {
      assertThat(leftover).doesNotExist();
      assertThat(stays).exists();
      assertThat(session.run(new Cell("cell 1", "1 + 1"), new Recorded()).failure()).isEmpty();
    } finally {
      Files.deleteIfExists(leftover);
      Files.delete(stays);
    }
  }

  @Test
  void kernelTrap13_everyRankIsWaitedForSoThatAFastFirstCellLosesNothing() {
    try (var session = start()) {
      var output = new Recorded();
      session.run(
          new Cell("cell 1", "System.out.println(\"first of \" + System.getenv(\"RANK\"));"),
          output);
      assertThat(output.out.toString().lines())
          .containsExactlyInAnyOrder("first of 0", "[1] first of 1", "[2] first of 2");
    }
  }

  /// No GPU is needed to see how a rank is started: the backend is initialized at its first use.
  @Test
  void aRankOfAGpuIsCompiledFullyAndKeepsOffMulticast() {
    try (var session =
        Session.start(new SessionOptions(1, BackendKind.CUDA, Optional.empty(), home))) {
      var output = new Recorded();
      session.run(
          new Cell(
              "cell 1",
              """
              for (var name : List.of("BRAID_BACKEND", "NCCL_NVLS_ENABLE", "NVSHMEM_DISABLE_NVLS")) {
                System.out.println(System.getenv(name));
              }
              System.out.println(java.lang.management.ManagementFactory.getRuntimeMXBean()
                  .getInputArguments().stream().anyMatch(flag -> flag.contains("TieredStop")));
              """),
          output);
      assertThat(output.out.toString().lines()).containsExactly("cuda", "0", "1", "false");
    }
  }

  /// Also covers hosts where NVML lists a GPU that CUDA cannot open.
  @Test
  void gpusThatCudaCannotUseAreOneClearErrorOfAllRanks() {
    assumeTrue(Gpu.missing().isPresent(), "CUDA can use the GPUs here");
    try (var session =
        Session.start(new SessionOptions(2, BackendKind.CUDA, Optional.empty(), home))) {
      var outcome =
          session.run(
              new Cell("cell 1", "SymmetricTensor.on(world).shape(2, 2).allocate()"),
              new Recorded());
      assertThat(outcome.failure().orElseThrow().message())
          .contains("the backend is cuda but no GPU can be used: ")
          .endsWith("; or run on the host: --backend host")
          .doesNotContain("\n");
    }
  }

  @Test
  void ranksThatCannotStartAreOneClearError() {
    assertThatThrownBy(
            () ->
                Session.start(
                    new SessionOptions(
                        2, BackendKind.HOST, Optional.of("as fast as you like"), home)))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("as fast as you like");
  }
}
