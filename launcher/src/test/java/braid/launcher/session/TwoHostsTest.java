package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.launcher.FrontJvm;
import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure;
import braid.launcher.cell.CellFailure.Cause;
import braid.launcher.cli.home.Installation;
import braid.launcher.hosts.JoinedRanks;
import braid.model.BackendKind;
import braid.natives.ucx.UcxWorker;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Four ranks on two hosts. A host is a set of namespaces of this machine (network, name, mounts,
/// IPC, processes) with its own `/dev/shm`; a bridge joins them with the front.
class TwoHostsTest {
  private static final int RANKS = 4;

  /// Starts a command in the namespaces of a host.
  private static final String IN_HOST =
      """
      set -e
      mount --bind "$2" /dev/shm
      hostname "$1"
      shift 2
      exec "$@"
      """;

  private static final String STUCK =
      """
      System.out.println("begun");
      if (world.rank() == 3) Thread.sleep(Long.MAX_VALUE); else world.barrier();
      """;

  private static final AtomicInteger TESTS = new AtomicInteger();

  @TempDir Path home;

  /// Distinguishes the names of concurrent test processes.
  private final int number = (int) (ProcessHandle.current().pid() % 250);

  /// Devices of an earlier test may still be ending.
  private final String suffix = number + "t" + TESTS.incrementAndGet();

  private final String bridge = "bb" + suffix;
  private final String network = "10.231." + number + ".";
  private final List<Process> agents = new ArrayList<>();
  private JoinedRanks ranks;
  private Session session;

  private static String run(String... command) throws IOException, InterruptedException {
    var process = new ProcessBuilder(command).redirectErrorStream(true).start();
    var text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (process.waitFor() != 0) {
      throw new IOException(String.join(" ", command) + ": " + text);
    }
    return text;
  }

  private static String refusal() {
    try {
      run("ip", "netns", "add", "braid-probe");
      run("ip", "netns", "del", "braid-probe");
      run("unshare", "-u", "-m", "-i", "-p", "-f", "--mount-proc", "true");
      return "";
    } catch (IOException e) {
      return String.valueOf(e.getMessage());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return "interrupted";
    }
  }

  private String space(int host) {
    return "braid-" + suffix + "-h" + host;
  }

  private String link(int host) {
    return "bv" + suffix + "h" + host;
  }

  @BeforeEach
  void start() throws Exception {
    var refusal = refusal();
    assumeTrue(refusal.isEmpty(), "namespaces are not available: " + refusal);
    run("ip", "link", "add", bridge, "type", "bridge");
    run("ip", "link", "set", bridge, "up");
    run("ip", "addr", "add", network + "254/24", "dev", bridge);
    for (int host = 1; host <= 2; host++) {
      var name = space(host);
      run("ip", "netns", "add", name);
      run("ip", "link", "add", link(host), "type", "veth", "peer", "name", "eth0", "netns", name);
      run("ip", "link", "set", link(host), "master", bridge, "up");
      run("ip", "-n", name, "addr", "add", network + host + "/24", "dev", "eth0");
      run("ip", "-n", name, "link", "set", "eth0", "up");
      run("ip", "-n", name, "link", "set", "lo", "up");
    }
    var file = home.resolve("braid.join");
    ranks =
        new JoinedRanks(
            new JoinedRanks.Settings(
                "attach",
                RANKS,
                InetAddress.getByName(network + "254"),
                0,
                Optional.empty(),
                Optional.of(file),
                Duration.ofSeconds(100),
                Installation.version(),
                Map.of(),
                Optional.empty()));
    var started =
        CompletableFuture.supplyAsync(
            () ->
                Session.start(
                    new SessionOptions(RANKS, BackendKind.HOST, Optional.empty(), home)
                        .starter(ranks)));
    assertThat(new Agents(home, RANKS).key().address()).isEqualTo(network + "254");
    for (int rank = 0; rank < RANKS; rank++) {
      int host = 1 + 2 * rank / RANKS;
      var command =
          new ArrayList<>(
              List.of("ip", "netns", "exec", space(host), "unshare", "-u", "-m", "-i", "-p"));
      command.addAll(List.of("-f", "--kill-child", "--mount-proc", "sh", "-c", IN_HOST, "sh"));
      command.add("h" + host);
      command.add(Files.createDirectories(home.resolve("shm" + host)).toString());
      command.addAll(FrontJvm.command());
      command.addAll(List.of("braid.launcher.cli.Braid", "rank", "--join", file.toString()));
      var builder = new ProcessBuilder(command).inheritIO();
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
    for (int host = 1; host <= 2; host++) {
      quietly("ip", "link", "del", link(host));
      quietly("ip", "netns", "del", space(host));
    }
    quietly("ip", "link", "del", bridge);
  }

  private static void quietly(String... command) throws InterruptedException {
    try {
      run(command);
    } catch (IOException e) {
      // It was never made.
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
  void aCutLinkIsNamedWithinTenSecondsAndNothingSurvives() throws Exception {
    long start = System.nanoTime();
    var failure = stuck(() -> run("ip", "link", "set", link(2), "down"));
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(12));
    assertThat(failure.cause()).isEqualTo(Cause.RANK_DIED);
    assertThat(failure.message())
        .contains("on h2 (pid")
        .contains("lost: host h2 has not answered for 7 s; is it down, or the network cut?");
    // Behind the cut, too.
    for (var agent : agents.subList(2, 4)) {
      assertThat(agent.waitFor(40, TimeUnit.SECONDS)).isTrue();
    }
  }
}
