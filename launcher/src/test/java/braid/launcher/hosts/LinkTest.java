package braid.launcher.hosts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.HexFormat;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class LinkTest {
  private static final Duration PATIENCE = Duration.ofSeconds(15);

  private final RunCertificate certificate = RunCertificate.create();
  private ServerSocket listener;

  /// Certificate of the front that accepts the next connection.
  private volatile RunCertificate current = certificate;

  @BeforeEach
  void listen() throws IOException {
    listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
  }

  @AfterEach
  void close() throws IOException {
    listener.close();
  }

  private JoinKey key(char token, RunCertificate expected) {
    var hash = HexFormat.of().formatHex(expected.hash());
    return new JoinKey(
        "127.0.0.1", listener.getLocalPort(), String.valueOf(token).repeat(64), Optional.of(hash));
  }

  /// Accepts connections as the front does, with the token `aaaa…`, and holds them.
  private void accept() {
    Thread.ofPlatform()
        .daemon()
        .start(
            () -> {
              while (!listener.isClosed()) {
                try {
                  var plain = listener.accept();
                  Thread.ofVirtual()
                      .start(
                          () -> {
                            var own = current;
                            try {
                              var _ = Link.accept(plain, own, key('a', own));
                            } catch (IOException e) {
                              // The test sees the other end.
                            }
                          });
                } catch (IOException e) {
                  // Closed.
                }
              }
            });
  }

  private static long created(Link link) {
    return link.socket.getSession().getCreationTime();
  }

  @Test
  void furtherConnectionsResumeTheSession() throws Exception {
    accept();
    var key = key('a', certificate);
    try (var joined = Link.connect(key)) {
      Thread.sleep(5); // Sessions of later full handshakes would have another time.
      for (int i = 0; i < 4; i++) {
        try (var another = joined.another(PATIENCE)) {
          assertThat(created(another)).isEqualTo(created(joined));
          assertThat(another.socket.getSession().getPeerCertificates())
              .containsExactly(certificate.certificate());
        }
      }
      try (var separate = Link.connect(key)) {
        assertThat(created(separate)).isGreaterThan(created(joined));
      }
    }
  }

  @Test
  void anotherTokenOrCertificateIsRefused() {
    accept();
    assertThatThrownBy(() -> Link.connect(key('b', certificate))).isInstanceOf(IOException.class);
    assertThatThrownBy(() -> Link.connect(key('a', RunCertificate.create())))
        .isInstanceOfSatisfying(IOException.class, e -> assertThat(Link.isForeign(e)).isTrue())
        .hasMessageContaining("its certificate is not the one of the join key");
  }

  /// A front that has ended, and another one at its port: the ticket of the first opens nothing.
  @Test
  void aSessionIsNotResumedWithAnotherFront() throws Exception {
    accept();
    Link joined = Link.connect(key('a', certificate));
    joined.close();
    current = RunCertificate.create();
    assertThatThrownBy(() -> joined.another(Duration.ZERO))
        .isInstanceOfSatisfying(IOException.class, e -> assertThat(Link.isForeign(e)).isTrue());
  }
}
