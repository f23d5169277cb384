package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.FrontJvm;
import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.launcher.cell.CellFailure.Cause;
import braid.launcher.cli.home.Installation;
import braid.launcher.hosts.JoinedRanks;
import braid.model.BackendKind;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Losses of agents, which are processes here, during a cell.
class JoinedFailureTest {
  private static final String STUCK =
      """
      System.out.println("begun");
      if (world.rank() == 1) Thread.sleep(Long.MAX_VALUE); else world.barrier();
      """;

  @TempDir Path home;
  private final List<Process> agents = new ArrayList<>();
  private JoinedRanks ranks;
  private Session session;

  @BeforeEach
  void start() throws Exception {
    var file = home.resolve("braid.join");
    ranks =
        new JoinedRanks(
            new JoinedRanks.Settings(
                "attach",
                2,
                InetAddress.getLoopbackAddress(),
                0,
                Optional.empty(),
                Optional.of(file),
                Duration.ofSeconds(100),
                Installation.version(),
                Map.of(),
                Optional.empty(),
                List.of()));
    var started =
        CompletableFuture.supplyAsync(
            () ->
                Session.start(
                    new SessionOptions(2, BackendKind.HOST, Optional.empty(), home)
                        .starter(ranks)));
    var waiting = new Agents(home, 2);
    assertThat(waiting.key().port()).isPositive();
    for (int rank = 0; rank < 2; rank++) {
      var command = new ArrayList<>(FrontJvm.command());
      command.addAll(List.of("braid.launcher.cli.Braid", "rank", "--join", file.toString()));
      var builder = new ProcessBuilder(command).inheritIO();
      builder.environment().put("BRAID_RANK", Integer.toString(rank));
      builder.environment().put("BRAID_HOST", waiting.host(rank));
      agents.add(builder.start());
    }
    session = started.get(100, TimeUnit.SECONDS);
  }

  @AfterEach
  void end() {
    session.close();
    ranks.close();
    agents.forEach(Process::destroyForcibly);
  }

  private static void signal(String name, long pid) throws IOException, InterruptedException {
    assertThat(new ProcessBuilder("kill", "-" + name, Long.toString(pid)).start().waitFor())
        .isZero();
  }

  private CellFailure stuck(StuckCell.Action action) throws Exception {
    return StuckCell.failure(session, STUCK, action);
  }

  private static void assertEnds(ProcessHandle process) throws Exception {
    process.onExit().get(60, TimeUnit.SECONDS);
  }

  /// A stopped agent answers as little as one behind a cut link.
  @Test
  void aSilentHostIsNamed() throws Exception {
    long pid = session.ranks().get(1).pid();
    var rank = ProcessHandle.of(pid).orElseThrow();
    var failure = stuck(() -> signal("STOP", agents.get(1).pid()));
    assertThat(failure.cause()).isEqualTo(Cause.RANK_DIED);
    assertThat(failure.message())
        .startsWith(
            "rank 1 on h2 (pid "
                + pid
                + ") was lost: host h2 has not answered for 7 s; is it down, or the network cut?");
    signal("CONT", agents.get(1).pid());
    assertThat(agents.get(1).waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertEnds(rank);
  }

  @Test
  void aKilledAgentIsNamedAndItsRankEnds() throws Exception {
    var rank = ProcessHandle.of(session.ranks().get(1).pid()).orElseThrow();
    var failure = stuck(() -> signal("KILL", agents.get(1).pid()));
    assertThat(failure.cause()).isEqualTo(Cause.RANK_DIED);
    assertThat(failure.message())
        .contains("rank 1 on h2 (pid " + rank.pid() + ") was lost: its agent has ended (pid ")
        .contains(agents.get(1).pid() + " on host h2)");
    assertEnds(rank);
  }

  @Test
  void aFrozenRankIsNamedWithItsHost() throws Exception {
    long pid = session.ranks().get(1).pid();
    var named = new CountDownLatch(1);
    var seen = new Recorded();
    seen.onStderr = named::countDown;
    signal("STOP", pid);
    var waiting =
        CompletableFuture.supplyAsync(
            () -> session.run(new Cell("the cell", "world.barrier();"), seen));
    assertThat(named.await(60, TimeUnit.SECONDS)).isTrue();
    signal("CONT", pid);
    assertThat(waiting.get(60, TimeUnit.SECONDS).failure()).isEmpty();
    assertThat(seen.err.toString())
        .contains("rank 1 on h2 (pid " + pid + ") has not answered for ")
        .contains("its process is stopped");
  }
}
