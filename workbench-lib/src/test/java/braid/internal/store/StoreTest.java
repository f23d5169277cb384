package braid.internal.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class StoreTest {
  private final LinkedBlockingQueue<String> log = new LinkedBlockingQueue<>();
  private StoreServer server;

  @BeforeEach
  void open() throws IOException {
    server = StoreServer.open("secret", log::add);
  }

  @AfterEach
  void close() {
    server.close();
  }

  /// Starts a peer that echoes its input.
  private static int echo(ServerSocket listener) {
    Thread.ofVirtual()
        .start(
            () -> {
              try (var socket = listener.accept()) {
                socket.getInputStream().transferTo(socket.getOutputStream());
              } catch (IOException e) {
                throw new UncheckedIOException(e);
              }
            });
    return listener.getLocalPort();
  }

  @Test
  void anEchoIsNoWelcome() throws IOException {
    try (var listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      int port = echo(listener);
      assertThatThrownBy(() -> StoreClient.connect("127.0.0.1", port, "secret", 0))
          .isInstanceOf(BraidException.class)
          .hasMessageContaining("it is not a store of braid");
    }
  }

  private StoreClient client(int rank) {
    return StoreClient.connect("127.0.0.1", server.port(), "secret", rank);
  }

  private static Meeting meeting(int epoch, String key, String label, int ranks) {
    return new Meeting(epoch, key, label, IntStream.range(0, ranks).boxed().toList());
  }

  @Test
  void aThousandStrangersAreTwoLines() throws Exception {
    for (int i = 0; i < 1013; i++) {
      assertThatThrownBy(() -> StoreClient.connect("127.0.0.1", server.port(), "guess", 0))
          .hasMessageContaining("wrong token");
    }
    server.close();
    assertThat(log)
        .satisfiesExactlyInAnyOrder(
            first ->
                assertThat(first).matches("the store refused /127.0.0.1:\\d+: wrong token; .*"),
            more ->
                assertThat(more)
                    .startsWith("the store refused a connection: wrong token; ")
                    .endsWith(" (1,012 more times)"));
  }

  /// Each takes a descriptor, which the process needs to save results.
  @Test
  void silentStrangersHoldFewConnections() throws Exception {
    var strangers = new ArrayList<Socket>();
    try {
      for (int i = 0; i < 200; i++) {
        strangers.add(new Socket(InetAddress.getLoopbackAddress(), server.port()));
      }
      for (var early : strangers.subList(0, 200 - 64)) {
        assertThat(early.getInputStream().read()).isEqualTo(-1);
      }
      try (var rank = client(0)) {
        assertThat(get(rank.join(meeting(1, "k", "gather", 1), bytes(7)))).hasSize(1);
      }
    } finally {
      for (var stranger : strangers) {
        stranger.close();
      }
    }
  }

  @Test
  void ranksThatArriveTogetherKeepTheirConnections() throws Exception {
    var arrived = new ArrayList<Socket>();
    try (var many = StoreServer.open("secret", 100)) {
      for (int i = 0; i < 100 + 64 + 1; i++) {
        arrived.add(new Socket(InetAddress.getLoopbackAddress(), many.port()));
      }
      assertThat(arrived.getFirst().getInputStream().read()).isEqualTo(-1);
      for (var kept : arrived.subList(1, arrived.size())) {
        kept.setSoTimeout(1);
        assertThatThrownBy(() -> kept.getInputStream().read())
            .isInstanceOf(SocketTimeoutException.class);
      }
    } finally {
      for (var each : arrived) {
        each.close();
      }
    }
  }

  private static byte[] bytes(int value) {
    return new byte[] {(byte) value};
  }

  private static List<byte[]> get(Ticket ticket) throws Exception {
    return ((Reply.Values) reply(ticket)).values();
  }

  private static Reply reply(Ticket ticket) throws Exception {
    return ticket.reply().get(30, TimeUnit.SECONDS);
  }

  private static void assertEnds(Ticket ticket, Reply expected) throws Exception {
    assertThat(reply(ticket)).isEqualTo(expected);
  }

  @Test
  void tenThousandExchangesLeaveTheServerEmpty() throws Exception {
    int exchanges = 10_000;
    try (var zero = client(0);
        var one = client(1)) {
      var other =
          CompletableFuture.supplyAsync(
              () -> {
                for (int i = 0; i < exchanges; i++) {
                  one.join(meeting(1, "k" + i, "gather", 2), bytes(i)).reply().join();
                }
                return true;
              });
      for (int i = 0; i < exchanges; i++) {
        var values = get(zero.join(meeting(1, "k" + i, "gather", 2), bytes(i + 1)));
        assertThat(values).containsExactly(bytes(i + 1), bytes(i));
      }
      other.join();
    }
    assertThat(server.pending()).isZero();
  }

  @Test
  void aWrongTokenIsRefusedWithALineOnBothSides() throws Exception {
    assertThatThrownBy(() -> StoreClient.connect("127.0.0.1", server.port(), "guess", 3))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "the store at 127.0.0.1:%d refused rank 3: wrong token; is BRAID_TOKEN from the session that listens here?",
            server.port());
    assertThat(log.poll(30, TimeUnit.SECONDS))
        .startsWith("the store refused /127.0.0.1:")
        .contains("wrong token");
  }

  @Test
  void aStrangerIsRefusedWithoutHarm() throws Exception {
    try (var stranger = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
      stranger
          .getOutputStream()
          .write("GET / HTTP/1.1\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
      assertThat(log.poll(30, TimeUnit.SECONDS)).contains("a frame must be 1..4096 bytes");
    }
    try (var zero = client(0)) {
      assertThat(get(zero.join(meeting(1, "k", "barrier", 1), bytes(7)))).containsExactly(bytes(7));
    }
  }

  @Test
  void aRankIsConnectedOnce() {
    try (var zero = client(0)) {
      assertThat(zero).isNotNull();
      assertThatThrownBy(() -> client(0)).hasMessageContaining("rank 0 is connected already");
    }
  }

  @Test
  void aMissingStoreIsNamed() {
    int port = server.port();
    server.close();
    assertThatThrownBy(() -> StoreClient.connect("127.0.0.1", port, "secret", 0))
        .isInstanceOf(BraidException.class)
        .hasMessageStartingWith("rank 0 cannot reach the store at 127.0.0.1:" + port);
  }

  @Test
  void differentCallsFailOnBothRanks() throws Exception {
    try (var zero = client(0);
        var one = client(1)) {
      var first = zero.join(meeting(1, "k", "barrier", 2), bytes(0));
      // The end of another meeting shows that the server has received the first.
      get(zero.join(meeting(1, "sync", "alone", 1), bytes(0)));
      var second = one.join(meeting(1, "k", "gather of longs", 2), bytes(0));
      var message =
          "all ranks of a group must make the same calls in the same order but rank 0 called barrier where rank 1 called gather of longs";
      assertEnds(first, new Reply.Different(message));
      assertEnds(second, new Reply.Different(message));
    }
    assertThat(server.pending()).isZero();
  }

  @Test
  void aMeetingEndsWhenAllMissingRanksHaveDeparted() throws Exception {
    try (var zero = client(0);
        var two = client(2)) {
      var mine = zero.join(meeting(1, "k", "barrier", 4), bytes(0));
      mine.departed().accept(Set.of(1, 3));
      // The end of another meeting shows that the server has received the departures.
      get(zero.join(meeting(1, "sync", "alone", 1), bytes(0)));
      // Rank 2 may still join, and does.
      var other = two.join(meeting(1, "k", "barrier", 4), bytes(2));
      other.departed().accept(Set.of(1));
      assertThat(mine.reply()).isNotDone();
      other.departed().accept(Set.of(1, 3));
      assertEnds(mine, new Reply.Departed(List.of(1, 3)));
      assertEnds(other, new Reply.Departed(List.of(1, 3)));
    }
  }

  @Test
  void givingUpNamesTheMissingRanksAndAbortsTheOthers() throws Exception {
    try (var zero = client(0);
        var two = client(2)) {
      var mine = zero.join(meeting(1, "k", "barrier", 3), bytes(0));
      mine.giveUp().run();
      var message =
          "ranks 1, 2 did not join barrier and rank 0 gave up; check what delayed them, or raise BRAID_TIMEOUT_SECONDS";
      assertEnds(mine, new Reply.Failed(message));
      var consequence = new Reply.Aborted("rank 0 gave up waiting for ranks 1, 2");
      var late = two.join(meeting(1, "k", "barrier", 3), bytes(0));
      assertEnds(late, consequence);
      try (var one = client(1)) {
        var later = one.join(meeting(1, "k", "barrier", 3), bytes(0));
        assertEnds(later, consequence);
      }
    }
    assertThat(server.pending()).isZero();
  }

  @Test
  void aDisconnectedRankFailsTheMeetingsThatMissIt() throws Exception {
    try (var zero = client(0)) {
      var one = client(1);
      var waiting = zero.join(meeting(1, "k", "barrier", 2), bytes(0));
      one.close();
      assertEnds(waiting, new Reply.Aborted("rank 1 disconnected before joining"));
    }
  }

  @Test
  void anAbortEndsTheMeetingsOfItsEpochOnly() throws Exception {
    try (var zero = client(0);
        var one = client(1)) {
      var waiting = zero.join(meeting(1, "k", "barrier", 2), bytes(0));
      // The end of another meeting shows that the server has received the first.
      get(zero.join(meeting(1, "sync", "alone", 1), bytes(0)));
      server.abort("rank 1 died");
      assertEnds(waiting, new Reply.Aborted("rank 1 died"));
      assertEnds(
          one.join(meeting(1, "later", "barrier", 2), bytes(0)), new Reply.Aborted("rank 1 died"));
      var next = zero.join(meeting(2, "k", "barrier", 2), bytes(0));
      assertThat(get(one.join(meeting(2, "k", "barrier", 2), bytes(1))))
          .containsExactly(bytes(0), bytes(1));
      assertThat(get(next)).hasSize(2);
      assertEnds(
          one.join(meeting(1, "k", "barrier", 2), bytes(0)),
          new Reply.Aborted("the other ranks have gone on to a later cell"));
    }
    assertThat(server.pending()).isZero();
  }

  @Test
  void closingTheServerReleasesWaitingRanks() throws Exception {
    try (var zero = client(0)) {
      var waiting = zero.join(meeting(1, "k", "barrier", 2), bytes(0));
      get(zero.join(meeting(1, "sync", "alone", 1), bytes(0)));
      server.close();
      assertThat(reply(waiting)).isInstanceOf(Reply.Aborted.class);
    }
  }

  @Test
  void tooLargeValuesAreRefusedAtJoin() {
    try (var zero = client(0)) {
      assertThatThrownBy(
              () -> zero.join(meeting(1, "k", "gather", 1), new byte[Meeting.MAX_VALUE_BYTES + 1]))
          .hasMessage(
              "a value for gather must be at most 1048576 bytes but was 1048577; use a SymmetricTensor for more");
    }
  }
}
