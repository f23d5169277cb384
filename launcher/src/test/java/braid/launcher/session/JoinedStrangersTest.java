package braid.launcher.session;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cell.Cell;
import braid.launcher.hosts.JoinKey;
import braid.launcher.hosts.RankPlace;
import braid.model.BackendKind;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Strangers at the port at which ranks join.
class JoinedStrangersTest {
  private static final String WORD = "aWordOfACellThatTheWireMustHide";

  @TempDir Path home;

  /// Forwards connections and records their bytes.
  private static final class Capture implements AutoCloseable {
    final List<ByteArrayOutputStream> sent = new CopyOnWriteArrayList<>();
    final List<ByteArrayOutputStream> answered = new CopyOnWriteArrayList<>();
    private final ServerSocket listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    private final JoinKey front;

    Capture(JoinKey front) throws IOException {
      this.front = front;
      Thread.ofVirtual().start(this::accept);
    }

    JoinKey key() {
      return new JoinKey(
          front.address(), listener.getLocalPort(), front.token(), front.certificate());
    }

    private void accept() {
      try {
        while (true) {
          var from = listener.accept();
          var to = new Socket(front.address(), front.port());
          forward(from.getInputStream(), to.getOutputStream(), sent);
          forward(to.getInputStream(), from.getOutputStream(), answered);
        }
      } catch (IOException e) {
        // The test is over.
      }
    }

    private static void forward(
        InputStream source, OutputStream out, List<ByteArrayOutputStream> copies) {
      var copy = new ByteArrayOutputStream();
      copies.add(copy);
      Thread.ofVirtual()
          .start(
              () -> {
                var chunk = new byte[1 << 16];
                try (source;
                    out) {
                  for (int count = source.read(chunk); count >= 0; count = source.read(chunk)) {
                    copy.write(chunk, 0, count);
                    out.write(chunk, 0, count);
                    out.flush();
                  }
                } catch (IOException e) {
                  // One end has closed.
                }
              });
    }

    String bytes() {
      var all = new StringBuilder();
      sent.forEach(each -> all.append(each.toString(StandardCharsets.ISO_8859_1)));
      answered.forEach(each -> all.append(each.toString(StandardCharsets.ISO_8859_1)));
      return all.toString();
    }

    @Override
    public void close() throws IOException {
      listener.close();
    }
  }

  @Test
  void theWireShowsNeitherTokenNorCellsAndAReplayGetsNothing() throws Exception {
    var agents = new Agents(home, 2);
    try (var ranks = agents.ranks(Duration.ofSeconds(60))) {
      var started =
          CompletableFuture.supplyAsync(
              () ->
                  Session.start(
                      new SessionOptions(2, BackendKind.HOST, Optional.empty(), home)
                          .starter(ranks)));
      try (var capture = new Capture(agents.key())) {
        for (int rank = 0; rank < 2; rank++) {
          var _ = agents.join(capture::key, new RankPlace(rank, 2, "h1", ""), Agents.VERSION);
        }
        try (var session = started.get(60, TimeUnit.SECONDS)) {
          var output = new Recorded();
          session.run(
              new Cell("cell", "System.out.println(\"" + WORD + "\" + world.rank());"), output);
          assertThat(output.out.toString()).contains(WORD);
          var recorded = capture.bytes();
          assertThat(recorded.length()).isGreaterThan(10_000);
          assertThat(recorded).doesNotContain(WORD, agents.key().token());
          assertThat(commandLines()).doesNotContain(agents.key().token());

          // A recorded connection, sent again.
          try (var replay = new Socket(agents.key().address(), agents.key().port())) {
            replay.getOutputStream().write(capture.sent.getFirst().toByteArray());
            var answer = replay.getInputStream().readAllBytes();
            assertThat(answer.length).isLessThan(4096);
          } catch (IOException e) {
            assertThat(e).hasMessageMatching("(?i).*(reset|broken pipe).*");
          }
          assertThat(session.run(new Cell("cell", "1 + 1"), new Recorded()).failure()).isEmpty();
        }
      }
    }
  }

  /// Returns the command lines of all processes.
  private static String commandLines() throws IOException {
    var all = new StringBuilder();
    try (var processes = Files.newDirectoryStream(Path.of("/proc"), "[0-9]*")) {
      for (var process : processes) {
        try {
          all.append(Files.readString(process.resolve("cmdline"), StandardCharsets.ISO_8859_1));
        } catch (IOException e) {
          // It has ended.
        }
      }
    }
    return all.toString();
  }

  /// They hold their connections, send garbage or nothing, and take no place from a rank.
  @Test
  void aFloodOfStrangersStopsNoRank() throws Exception {
    var agents = new Agents(home, 2);
    var strangers = new ArrayList<Socket>();
    try (var ranks = agents.ranks(Duration.ofSeconds(60))) {
      var started =
          CompletableFuture.supplyAsync(
              () ->
                  Session.start(
                      new SessionOptions(2, BackendKind.HOST, Optional.empty(), home)
                          .starter(ranks)));
      var key = agents.key();
      var random = new Random(20302);
      for (int i = 0; i < 300; i++) {
        var stranger = new Socket(key.address(), key.port());
        strangers.add(stranger);
        if (i % 2 == 0) {
          var garbage = new byte[200];
          random.nextBytes(garbage);
          try {
            stranger.getOutputStream().write(garbage);
          } catch (IOException e) {
            assertThat(e).hasMessageMatching("(?i).*(reset|broken pipe).*");
          }
        }
      }
      agents.joinAll();
      try (var session = started.get(60, TimeUnit.SECONDS)) {
        assertThat(session.run(new Cell("cell", "world.barrier();"), new Recorded()).failure())
            .isEmpty();
        // Silent ones are closed, too.
        for (var stranger : strangers) {
          stranger.setSoTimeout(100_000);
          try {
            assertThat(stranger.getInputStream().readAllBytes().length).isLessThan(200);
          } catch (IOException e) {
            assertThat(e).hasMessageMatching("(?i).*(reset|broken pipe).*");
          }
        }
      }
    } finally {
      for (var stranger : strangers) {
        stranger.close();
      }
    }
  }
}
