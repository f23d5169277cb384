package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.launcher.FrontJvm;
import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.launcher.cell.CellFailure.Cause;
import braid.launcher.cli.home.Installation;
import braid.launcher.hosts.JoinedRanks;
import braid.launcher.hosts.NamespaceHosts;
import braid.model.BackendKind;
import braid.natives.ucx.UcxWorker;
import java.net.InetAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.ResourceLock;

/// Four ranks on two hosts of this machine.
@ResourceLock(NamespaceHosts.CORES)
class TwoHostsTest {
  private static final int RANKS = 4;

  private static final String STUCK =
      """
      System.out.println("begun");
      if (world.rank() == 3) Thread.sleep(Long.MAX_VALUE); else world.barrier();
      """;

  /// Prints more than a cut link takes, so that writes to it wait.
  private static final String FLOOD =
      """
      System.out.println("begun");
      String line = "x".repeat(1000);
      while (world.rank() == 3) { System.out.println(line); System.err.println(line); }
      world.barrier();
      """;

  @TempDir Path home;

  private final List<Process> agents = new ArrayList<>();
  private NamespaceHosts hosts;
  private JoinedRanks ranks;
  private Session session;

  @BeforeEach
  void start() throws Exception {
    hosts = new NamespaceHosts(2);
    var file = home.resolve("braid.join");
    ranks =
        new JoinedRanks(
            new JoinedRanks.Settings(
                "attach",
                RANKS,
                InetAddress.getByName(hosts.frontAddress()),
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
                    new SessionOptions(RANKS, BackendKind.HOST, Optional.empty(), home)
                        .starter(ranks)));
    assertThat(new Agents(home, RANKS).key().address()).isEqualTo(hosts.frontAddress());
    for (int rank = 0; rank < RANKS; rank++) {
      var command = new ArrayList<>(FrontJvm.command());
      command.addAll(List.of("braid.launcher.cli.Braid", "rank", "--join", file.toString()));
      var builder =
          new ProcessBuilder(hosts.command(1 + 2 * rank / RANKS, home, command)).inheritIO();
      builder.environment().put("BRAID_RANK", Integer.toString(rank));
      agents.add(builder.start());
    }
    session = started.get(100, TimeUnit.SECONDS);
  }

  @AfterEach
  void end() throws Exception {
    if (session != null) {
      session.close();
      ranks.close();
    }
    agents.forEach(Process::destroyForcibly);
    if (hosts != null) {
      hosts.close();
    }
  }

  private String result(String code) {
    var outcome = session.run(new Cell("the cell", code), new Recorded());
    assertThat(outcome.failure()).as(code).isEmpty();
    return outcome.result().orElseThrow().text();
  }

  private CellFailure stuck(StuckCell.Action action) throws Exception {
    return StuckCell.failure(session, STUCK, action);
  }

  private void assertEndsWithALostHost(String cell) throws Exception {
    var failure =
        StuckCell.failure(
            session,
            cell,
            () -> {
              Thread.sleep(1000);
              hosts.cut(2);
            });
    assertThat(failure.cause()).isEqualTo(Cause.RANK_DIED);
    assertThat(failure.message())
        .contains("on h2 (pid")
        .contains("lost: host h2 has not answered for 7 s; is it down, or the network cut?");
    // Behind the cut, too.
    for (var agent : agents.subList(2, 4)) {
      assertThat(agent.waitFor(40, TimeUnit.SECONDS)).isTrue();
    }
  }

  @Test
  void fourRanksOfTwoHostsMeet() {
    assertThat(result("world.barrier(); java.util.Arrays.toString(world.gather(world.rank()))"))
        .contains("[0, 1, 2, 3]");
    assertThat(
            result(
                "world.gather(Files.readString(Path.of(\"/proc/sys/kernel/hostname\")).strip()).toString()"))
        .contains("[h1, h1, h2, h2]");
    assertThat(
            result(
                "world.gather(System.getenv(\"BRAID_HOST\") + System.getenv(\"LOCAL_RANK\")).toString()"))
        .contains("[h10, h11, h20, h21]");
    assertThat(result("%ranks")).containsSubsequence("h1", "h1", "h2", "h2");
    assertThat(result("world.rank()"))
        .isEqualTo("[0 on h1] 0\n[1 on h1] 1\n[2 on h2] 2\n[3 on h2] 3");
  }

  @Test
  void pipelinesReachMemoryOfBothHosts() {
    assumeTrue(UcxWorker.missing().isEmpty(), () -> "UCX is missing: " + UcxWorker.missing());
    assertThat(result("world.hosts().toString()")).contains("h1 [0, 1]", "h2 [2, 3]");
    for (var method : List.of("ring()", "pipelined(2)", "direct()")) {
      assertThat(
              result(
                  "Pipeline.on(world).gemm(GemmSpec.allGatherGemm(96, 24, 16)).overlap(Overlap.%s).build().verify().toString()"
                      .formatted(method)))
          .as(method)
          .contains("verified");
    }
    // Groups are the ranks of each host.
    assertThat(
            result(
                "Pipeline.on(world).gemm(GemmSpec.gemmAllReduce(96, 24, 16)).overlap(Overlap.twoLevel()).build().verify().toString()"))
        .contains("verified");
    assertThat(
            result(
                "Pipeline.on(world).attention(AttentionSpec.of(96, 4, 8).causal()).overlap(ContextParallel.ring()).build().verify().toString()"))
        .contains("verified");
  }

  @Test
  void aKilledRankIsNamedWithItsHost() throws Exception {
    var java = agents.get(3).descendants().toList().getLast();
    var failure = stuck(java::destroyForcibly);
    assertThat(failure.cause()).isEqualTo(Cause.RANK_DIED);
    assertThat(failure.message()).startsWith("rank 3 on h2 (pid ").contains("SIGKILL");
    assertThat(session.run(new Cell("cell", "%restart"), new Recorded()).failure()).isEmpty();
    assertThat(result("world.barrier(); world.size()")).isEqualTo("4");
  }

  @Test
  void aCutLinkIsNamedAndNothingSurvives() throws Exception {
    assertEndsWithALostHost(STUCK);
  }

  @Test
  void aCutLinkFullOfOutputIsNamedToo() throws Exception {
    assertEndsWithALostHost(FLOOD);
  }
}
