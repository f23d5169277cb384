package braid.launcher.kernel.channels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.dflib.jjava.jupyter.kernel.KernelConnectionProperties;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/// Tests registrations that fail; the protocol tests in Python have those that succeed.
@Execution(ExecutionMode.CONCURRENT)
class RegistrationTest {
  private static final KernelConnectionProperties CONNECTION =
      new KernelConnectionProperties("", 0, 0, 0, 0, 0, "tcp", "hmac-sha256", "key");

  private static void announce(ServerSocket service, Duration patience) throws IOException {
    var address = new InetSocketAddress(service.getInetAddress(), service.getLocalPort());
    try (var registration = Registration.connect(address, patience)) {
      assertThat(registration.ip()).isEqualTo("127.0.0.1");
      registration.announce("id", CONNECTION, Map.of(Channel.SHELL, 1));
    }
  }

  @Test
  void aServiceThatNeverAnswersIsNotWaitedForLong() throws IOException {
    try (var service = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      assertThatThrownBy(() -> announce(service, Duration.ofMillis(100)))
          .isInstanceOf(BraidException.class)
          .hasMessageContaining("tcp://")
          .hasMessageContaining("no answer came");
    }
  }

  @Test
  void aServiceOfAnotherProtocolIsRefused() throws Exception {
    for (var answer : List.of("HTTP/1.1 400 Bad Request\r\n".repeat(5), "")) {
      try (var service = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
        var answering =
            Thread.ofVirtual()
                .start(
                    () -> {
                      try (var socket = service.accept()) {
                        socket.getInputStream().readNBytes(1);
                        socket.getOutputStream().write(answer.getBytes(MessageCodec.CHARSET));
                        socket.shutdownOutput();
                        socket.getInputStream().readAllBytes();
                      } catch (IOException e) {
                        // The kernel has closed the connection.
                      }
                    });
        assertThatThrownBy(() -> announce(service, Duration.ofSeconds(60)))
            .isInstanceOf(BraidException.class)
            .hasMessageContaining(
                answer.isEmpty() ? "the connection ended" : "it does not speak ZMTP 3 with NULL");
        answering.join();
      }
    }
  }
}
