package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.launcher.FrontJvm;
import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure.Cause;
import braid.launcher.cli.home.Installation;
import braid.launcher.hosts.JoinedRanks;
import braid.launcher.hosts.NamespaceHosts;
import braid.model.BackendKind;
import braid.natives.ucx.UcxWorker;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.ResourceLock;

/// Four ranks on two hosts of this machine.
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
@ResourceLock(NamespaceHosts.CORES)
class TwoHostsTest {
  private static final int RANKS = 4;

  private static final String STUCK =
      """
      System.out.println("begun");
      if (world.rank() == 3) Thread.sleep(Long.MAX_VALUE); else world.barrier();
      """;

  /// Rank 3 prints more than a cut link takes, so that writes to it wait. The link of rank 2 is
  /// idle.
  private static final String FLOOD =
      """
      System.out.println("begun");
      String line = "x".repeat(1000);
      while (world.rank() == 3) { System.out.println(line); System.err.println(line); }
      world.barrier();
      """;

  @TempDir static Path home;

  private static final List<Process> AGENTS = new ArrayList<>();
  private static @Nullable NamespaceHosts hosts;
  private static @Nullable JoinedRanks ranks;

  @RegisterExtension
  static final SharedSession SHARED = new SharedSession(TwoHostsTest::start, TwoHostsTest::end);

  private static Session start() throws Exception {
    var made = new NamespaceHosts(2);
    hosts = made;
    var folder = Files.createTempDirectory(home, "session");
    var file = folder.resolve("braid.join");
    var joined =
        new JoinedRanks(
            new JoinedRanks.Settings(
                "attach",
                RANKS,
                InetAddress.getByName(made.frontAddress()),
                0,
                Optional.empty(),
                Optional.of(file),
                Duration.ofSeconds(100),
                Installation.version(),
                Map.of(),
                Optional.empty(),
                List.of()));
    ranks = joined;
    var started =
        CompletableFuture.supplyAsync(
            () ->
                Session.start(
                    new SessionOptions(RANKS, BackendKind.HOST, Optional.empty(), folder)
                        .starter(joined)));
    assertThat(new Agents(folder, RANKS).key().address()).isEqualTo(made.frontAddress());
    for (int rank = 0; rank < RANKS; rank++) {
      var command = new ArrayList<>(FrontJvm.command());
      command.addAll(List.of("braid.launcher.cli.Braid", "rank", "--join", file.toString()));
      var builder =
          new ProcessBuilder(made.command(1 + 2 * rank / RANKS, folder, command)).inheritIO();
      builder.environment().put("BRAID_RANK", Integer.toString(rank));
      AGENTS.add(builder.start());
    }
    return started.get(100, TimeUnit.SECONDS);
  }

  private static void end() throws Exception {
    if (ranks != null) {
      ranks.close();
      ranks = null;
    }
    AGENTS.forEach(Process::destroyForcibly);
    AGENTS.clear();
    if (hosts != null) {
      hosts.close();
      hosts = null;
    }
  }

  private static String result(String code) {
    return SHARED.result(code);
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
    var java = AGENTS.get(3).descendants().toList().getLast();
    var failure = StuckCell.failure(SHARED.get(), STUCK, java::destroyForcibly);
    assertThat(failure.cause()).isEqualTo(Cause.RANK_DIED);
    assertThat(failure.message()).startsWith("rank 3 on h2 (pid ").contains("SIGKILL");
    assertThat(SHARED.get().run(new Cell("cell", "%restart"), new Recorded()).failure()).isEmpty();
    assertThat(result("world.barrier(); world.size()")).isEqualTo("4");
  }

  /// The last test, since the next one would start the ranks again.
  @Test
  @Order(Integer.MAX_VALUE)
  void aCutLinkIsNamedAndNothingSurvives() throws Exception {
    var failure =
        StuckCell.failure(
            SHARED.get(),
            FLOOD,
            () -> {
              Thread.sleep(1000);
              Objects.requireNonNull(hosts).cut(2);
            });
    assertThat(failure.cause()).isEqualTo(Cause.RANK_DIED);
    assertThat(failure.message())
        .contains("on h2 (pid")
        .contains("lost: host h2 has not answered for 7 s; is it down, or the network cut?");
    // Behind the cut, too.
    for (var agent : AGENTS.subList(2, 4)) {
      assertThat(agent.waitFor(40, TimeUnit.SECONDS)).isTrue();
    }
  }
}
