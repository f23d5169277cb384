package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import braid.launcher.cell.Cell;
import braid.launcher.cell.CellFailure.Cause;
import braid.launcher.cell.Outcome;
import braid.launcher.hosts.JoinKey;
import braid.launcher.hosts.JoinedRanks;
import braid.launcher.hosts.RankPlace;
import braid.model.BackendKind;
import braid.model.BraidException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// A session whose ranks others have started.
class JoinedSessionTest {
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  @TempDir Path home;

  private Session session(JoinedRanks ranks, int count) {
    return Session.start(
        new SessionOptions(count, BackendKind.HOST, Optional.empty(), home).starter(ranks));
  }

  private static Outcome run(Session session, String code, Recorded output) {
    return session.run(new Cell("the cell", code), output);
  }

  private static String result(Session session, String code) {
    var outcome = run(session, code, new Recorded());
    assertThat(outcome.failure()).as(code).isEmpty();
    return outcome.result().orElseThrow().text();
  }

  private static void kill9(long pid) throws Exception {
    assertThat(new ProcessBuilder("kill", "-9", Long.toString(pid)).start().waitFor()).isZero();
  }

  @Test
  void ranksOfTwoHostsRunCellsTogether() throws Exception {
    var agents = new Agents(home, 4);
    agents.joinAll();
    try (var ranks = agents.ranks(PATIENCE);
        var session = session(ranks, 4)) {
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(agents.file)))
          .isEqualTo("rw-------");
      var output = new Recorded();
      var outcome =
          run(
              session,
              """
              %%output all
              world.barrier();
              System.out.println(System.getenv("BRAID_HOST") + System.getenv("LOCAL_RANK")
                  + System.getenv("LOCAL_WORLD_SIZE") + System.getenv("BRAID_TIMEOUT_SECONDS")
                  + System.getenv("BRAID_JOIN"));
              System.err.println("on stderr");
              """,
              output);
      assertThat(outcome.failure()).isEmpty();
      assertThat(output.out.toString())
          .contains("h102100null", "h112100null", "h202100null", "h212100null");
      assertThat(output.err.toString()).contains("on stderr");
      assertThat(result(session, "world.rank() * 10 + world.size()"))
          .contains("4", "14", "24", "34");
      run(session, "%ranks", output);
      var table = result(session, "%ranks");
      assertThat(table).containsSubsequence("h1", "h1", "h2", "h2");
      assertThat(ranks.description()).isEqualTo("attach");
    }
    for (var end : agents.ends) {
      end.get(60, TimeUnit.SECONDS);
    }
    assertThat(agents.file).doesNotExist();
  }

  @Test
  void aKilledRankIsNamedWithItsHostAndRestartNeedsNoNewAgents() throws Exception {
    var agents = new Agents(home, 2);
    agents.joinAll();
    try (var ranks = agents.ranks(PATIENCE);
        var session = session(ranks, 2)) {
      var begun = new CountDownLatch(1);
      var output = new Recorded();
      output.onStdout = begun::countDown;
      var outcome =
          CompletableFuture.supplyAsync(
              () ->
                  run(
                      session,
                      """
                      System.out.println("begun");
                      if (world.rank() == 1) Thread.sleep(Long.MAX_VALUE); else world.barrier();
                      """,
                      output));
      begun.await();
      long victim = session.ranks().get(1).pid();
      kill9(victim);
      var failure = outcome.get(60, TimeUnit.SECONDS).failure().orElseThrow();
      assertThat(failure.cause()).isEqualTo(Cause.RANK_DIED);
      assertThat(failure.message())
          .startsWith("rank 1 on h2 (pid " + victim + ") was killed by SIGKILL (signal 9)");
      assertThat(run(session, "%restart", new Recorded()).failure()).isEmpty();
      assertThat(result(session, "world.barrier(); world.size()")).isEqualTo("2");
      assertThat(agents.ends).hasSize(2).noneMatch(CompletableFuture::isDone);
    }
  }

  @Test
  void aRankThatDoesNotJoinIsNamed() {
    var agents = new Agents(home, 3);
    agents.join(0);
    agents.join(1);
    try (var ranks = agents.ranks(Duration.ofSeconds(1))) {
      // A busy machine needs more than one time limit for the other two.
      var failure = catchThrowable(() -> session(ranks, 3));
      while (String.valueOf(failure.getMessage()).startsWith("ranks ")) {
        failure = catchThrowable(() -> session(ranks, 3));
      }
      assertThat(failure)
          .isInstanceOf(BraidException.class)
          .hasMessageMatching(
              "rank 2 of 3 did not join at 127.0.0.1:\\d+ within 1 s \\(ranks 0, 1 did, from h1\\); start them, or raise --join-timeout");
    }
  }

  @Test
  void agentsThatDoNotFitAreRefusedByName() throws Exception {
    var agents = new Agents(home, 1);
    try (var ranks = agents.ranks(PATIENCE)) {
      var started = CompletableFuture.supplyAsync(() -> session(ranks, 1));
      assertRefused(
          agents.join(agents::key, new RankPlace(0, 1, "h1", ""), "0.9"),
          "refused rank 0: it is Braid 0.9 but the front is test; use one build on all hosts");
      assertRefused(
          agents.join(agents::key, new RankPlace(0, 8, "h1", ""), Agents.VERSION),
          "refused rank 0: 8 ranks were started but the session has 1; try -n 8");
      assertRefused(
          agents.join(agents::key, new RankPlace(1, 0, "h1", ""), Agents.VERSION),
          "refused rank 1: its rank must be 0..0 but is 1; start 1 rank");
      agents.join(0);
      try (var session = started.get(60, TimeUnit.SECONDS)) {
        assertRefused(
            agents.join(agents::key, new RankPlace(0, 1, "h3", ""), Agents.VERSION),
            "refused rank 0: rank 0 has joined from host h1 already; is BRAID_RANK set twice?");
        assertThat(result(session, "1 + 1")).isEqualTo("2");
      }
    }
  }

  private static void assertRefused(CompletableFuture<Void> agent, String reason) {
    assertThat(agent)
        .failsWithin(Duration.ofMinutes(1))
        .withThrowableThat()
        .havingCause()
        .isInstanceOf(BraidException.class)
        .withMessageContaining(reason);
  }

  @Test
  void ranksOfAHostMustBeConsecutive() {
    var agents = new Agents(home, 3);
    for (int rank = 0; rank < 3; rank++) {
      var _ =
          agents.join(
              agents::key, new RankPlace(rank, 3, rank == 1 ? "h2" : "h1", ""), Agents.VERSION);
    }
    try (var ranks = agents.ranks(PATIENCE)) {
      assertThatThrownBy(() -> session(ranks, 3))
          .hasMessageStartingWith(
              "ranks of a host must be consecutive but host h1 has ranks 0, 2; start them host by host");
    }
  }

  @Test
  void aKeyOfAnEarlierRunIsRefusedAtOnce() throws Exception {
    var agents = new Agents(home, 1);
    try (var ranks = agents.ranks(PATIENCE)) {
      var started = CompletableFuture.supplyAsync(() -> session(ranks, 1));
      var key = agents.key();
      var otherToken = new JoinKey(key.address(), key.port(), "0".repeat(64), key.certificate());
      var otherCertificate =
          new JoinKey(key.address(), key.port(), key.token(), Optional.of("0".repeat(64)));
      assertRefused(
          agents.join(() -> otherToken, new RankPlace(0, 1, "h1", ""), Agents.VERSION),
          "it does not know the token of this session");
      assertRefused(
          agents.join(() -> otherCertificate, new RankPlace(0, 1, "h1", ""), Agents.VERSION),
          "its certificate is not the one of the join key");
      agents.join(0);
      started.get(60, TimeUnit.SECONDS).close();
    }
  }
}
