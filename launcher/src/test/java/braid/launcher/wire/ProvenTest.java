package braid.launcher.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/// The token of a connection is proved and never sent.
class ProvenTest {
  private static final byte[] BOUND = {7};

  /// A connection, and a copy of the bytes of each direction.
  private static final class Wire implements AutoCloseable {
    final ByteArrayOutputStream sent = new ByteArrayOutputStream();
    final ByteArrayOutputStream answered = new ByteArrayOutputStream();
    final Socket connecting;
    final Socket accepting;
    final DataInputStream connectingIn;
    final DataInputStream acceptingIn;
    final DataOutputStream connectingOut;
    final DataOutputStream acceptingOut;

    Wire() throws IOException {
      try (var listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
        connecting = new Socket(listener.getInetAddress(), listener.getLocalPort());
        accepting = listener.accept();
      }
      connectingIn = new DataInputStream(connecting.getInputStream());
      acceptingIn = new DataInputStream(accepting.getInputStream());
      connectingOut = new DataOutputStream(copied(connecting.getOutputStream(), sent));
      acceptingOut = new DataOutputStream(copied(accepting.getOutputStream(), answered));
    }

    @Override
    public void close() throws IOException {
      connecting.close();
      accepting.close();
    }

    private static OutputStream copied(OutputStream out, ByteArrayOutputStream copy) {
      return new OutputStream() {
        @Override
        public void write(int value) throws IOException {
          copy.write(value);
          out.write(value);
        }

        @Override
        public void flush() throws IOException {
          out.flush();
        }
      };
    }

    CompletableFuture<Void> accept(String token, byte[] bound) {
      return CompletableFuture.runAsync(
          () -> {
            try {
              Proven.accept(acceptingIn, acceptingOut, token, bound);
            } catch (IOException e) {
              throw new IllegalStateException(e.getMessage(), e);
            }
          });
    }
  }

  @Test
  void equalTokensAreProvedAndNotSent() throws Exception {
    try (var wire = new Wire()) {
      var accepted = wire.accept("a-secret-token", BOUND);
      Proven.connect(wire.connectingIn, wire.connectingOut, "a-secret-token", BOUND);
      accepted.get();
      assertThat(wire.sent.toString(StandardCharsets.ISO_8859_1)).doesNotContain("secret");
      assertThat(wire.answered.toString(StandardCharsets.ISO_8859_1)).doesNotContain("secret");
      assertThat(wire.sent.size()).isEqualTo(4 + 32 + 32);
    }
  }

  @Test
  void anAcceptingEndWithAnotherTokenIsRefused() throws Exception {
    try (var wire = new Wire()) {
      var accepted = wire.accept("right", BOUND);
      assertThatThrownBy(
              () -> Proven.connect(wire.connectingIn, wire.connectingOut, "wrong", BOUND))
          .isInstanceOf(IOException.class)
          .hasMessage("it does not know the token of this session");
      wire.connecting.close();
      assertThat(accepted).failsWithin(Duration.ofSeconds(30));
    }
  }

  @Test
  void endsThatSeeDifferentDataAreRefused() throws Exception {
    try (var wire = new Wire()) {
      var accepted = wire.accept("token", new byte[] {8});
      assertThatThrownBy(
              () -> Proven.connect(wire.connectingIn, wire.connectingOut, "token", BOUND))
          .isInstanceOf(IOException.class);
      wire.connecting.close();
      assertThat(accepted).failsWithin(Duration.ofSeconds(30));
    }
  }

  @Test
  void aReplayedProofIsRefused() throws Exception {
    try (var wire = new Wire()) {
      var accepted = wire.accept("token", BOUND);
      Proven.connect(wire.connectingIn, wire.connectingOut, "token", BOUND);
      accepted.get();
      var replay = new DataInputStream(new ByteArrayInputStream(wire.sent.toByteArray()));
      var ignored = new DataOutputStream(new ByteArrayOutputStream());
      assertThatThrownBy(() -> Proven.accept(replay, ignored, "token", BOUND))
          .isInstanceOf(IOException.class)
          .hasMessage("its token does not match this session's");
    }
  }

  @Test
  void aStrangerIsRefusedAfterFourBytes() {
    var stranger =
        new DataInputStream(new ByteArrayInputStream("GET /".getBytes(StandardCharsets.US_ASCII)));
    var answer = new ByteArrayOutputStream();
    assertThatThrownBy(() -> Proven.accept(stranger, new DataOutputStream(answer), "token", BOUND))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("not a Braid rank");
    assertThat(answer.size()).isZero();
  }
}
