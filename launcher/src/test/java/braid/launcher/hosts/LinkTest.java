package braid.launcher.hosts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class LinkTest {
  private final RunCertificate certificate = RunCertificate.create();
  private final BlockingQueue<Link> accepted = new LinkedBlockingQueue<>();
  private ServerSocket listener;

  @BeforeEach
  void listen() throws IOException {
    listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    Thread.ofPlatform().daemon().start(this::accept);
  }

  @AfterEach
  void close() throws IOException {
    listener.close();
    accepted.forEach(Link::close);
  }

  private JoinKey key(char token, RunCertificate expected) {
    var hash = HexFormat.of().formatHex(expected.hash());
    return new JoinKey(
        "127.0.0.1", listener.getLocalPort(), String.valueOf(token).repeat(64), Optional.of(hash));
  }

  /// Accepts connections as the front does, with the token `aaaa…`.
  private void accept() {
    while (!listener.isClosed()) {
      try {
        var plain = listener.accept();
        Thread.ofVirtual().start(() -> accept(plain));
      } catch (IOException e) {
        // Closed.
      }
    }
  }

  private void accept(Socket plain) {
    try {
      accepted.add(Link.accept(plain, certificate, key('a', certificate)));
    } catch (IOException e) {
      // The test sees the other end.
    }
  }

  /// Both ends of a link.
  private record Ends(Link agent, Link front) {
    /// Reads both ends, as their owners do, and returns the messages that are no channel's.
    BlockingQueue<LinkMessage> read() {
      var messages = new LinkedBlockingQueue<LinkMessage>();
      for (var link : List.of(agent, front)) {
        Thread.ofVirtual()
            .start(
                () -> {
                  try (link) {
                    while (true) {
                      messages.add(link.read());
                    }
                  } catch (IOException e) {
                    // The link has ended.
                  }
                });
      }
      return messages;
    }
  }

  private Ends connect() throws Exception {
    var agent = Link.connect(key('a', certificate));
    return new Ends(agent, accepted.poll(30, TimeUnit.SECONDS));
  }

  private static byte[] bytes(int count, long seed) {
    var bytes = new byte[count];
    new Random(seed).nextBytes(bytes);
    return bytes;
  }

  @Test
  void anotherTokenOrCertificateIsRefused() {
    assertThatThrownBy(() -> Link.connect(key('b', certificate))).isInstanceOf(IOException.class);
    assertThatThrownBy(() -> Link.connect(key('a', RunCertificate.create())))
        .isInstanceOfSatisfying(IOException.class, e -> assertThat(Link.isForeign(e)).isTrue())
        .hasMessageContaining("its certificate is not the one of the join key");
  }

  /// Streams of many windows, both ways at once.
  @Test
  void everyChannelDeliversItsBytesInOrder() throws Exception {
    var ends = connect();
    ends.read();
    try (var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      var readers = new ArrayList<CompletableFuture<byte[]>>();
      var writers = new ArrayList<CompletableFuture<Void>>();
      var sent = new ArrayList<byte[]>();
      for (int i = 0; i < 12; i++) {
        var sender = i % 2 == 0 ? ends.agent : ends.front;
        var receiver = i % 2 == 0 ? ends.front : ends.agent;
        var sending = sender.open();
        var receiving = receiver.accept(sending.number());
        var bytes = bytes(i * Channel.WINDOW / 3 + i, i);
        sent.add(bytes);
        readers.add(CompletableFuture.supplyAsync(() -> all(receiving), threads));
        writers.add(writing(() -> sending.copy(new ByteArrayInputStream(bytes))));
      }
      for (var writer : writers) {
        writer.get();
      }
      for (int i = 0; i < sent.size(); i++) {
        assertThat(readers.get(i).get()).as("channel " + i).isEqualTo(sent.get(i));
      }
    }
  }

  private static byte[] all(Channel channel) {
    try {
      return channel.in().readAllBytes();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void bytesThatNobodyReadsDelayNothingElse() throws Exception {
    var ends = connect();
    var messages = ends.read();
    var stuck = ends.agent.open();
    var unread = ends.front.accept(stuck.number());
    var bytes = bytes(3 * Channel.WINDOW, 7);
    var writing = writing(() -> stuck.out().write(bytes));
    var flowing = ends.agent.open();
    var read = ends.front.accept(flowing.number());
    flowing.copy(new ByteArrayInputStream(new byte[] {1, 2, 3}));
    assertThat(all(read)).containsExactly(1, 2, 3);
    ends.agent.send(new LinkMessage.Kill(5));
    assertThat(messages.poll(30, TimeUnit.SECONDS)).isEqualTo(new LinkMessage.Kill(5));
    assertThat(writing).isNotDone();
    assertThat(unread.in().readNBytes(bytes.length)).isEqualTo(bytes);
    writing.get(30, TimeUnit.SECONDS);
  }

  private interface Writing {
    void write() throws IOException;
  }

  private static CompletableFuture<Void> writing(Writing writing) {
    var done = new CompletableFuture<Void>();
    Callable<Boolean> write =
        () -> {
          writing.write();
          return done.complete(null);
        };
    Thread.ofVirtual()
        .start(
            () -> {
              try {
                write.call();
              } catch (Exception e) {
                done.completeExceptionally(e);
              }
            });
    return done;
  }

  @Test
  void aChannelThatTheOtherEndClosesTakesNoMore() throws Exception {
    var ends = connect();
    ends.read();
    var sending = ends.agent.open();
    var receiving = ends.front.accept(sending.number());
    var writing = writing(() -> sending.out().write(bytes(3 * Channel.WINDOW, 8)));
    receiving.in().readNBytes(10);
    receiving.close();
    assertThatThrownBy(() -> writing.get(30, TimeUnit.SECONDS))
        .hasCauseInstanceOf(EOFException.class);
    assertThat(sending.in().read()).isEqualTo(-1);
  }

  @Test
  void aLinkThatEndsEndsItsChannels() throws Exception {
    var ends = connect();
    ends.read();
    var sending = ends.agent.open();
    var receiving = ends.front.accept(sending.number());
    sending.out().write(new byte[] {4, 5});
    assertThat(receiving.in().read()).isEqualTo(4);
    var writing = writing(() -> receiving.out().write(bytes(3 * Channel.WINDOW, 9)));
    ends.agent.close();
    assertThatThrownBy(() -> writing.get(30, TimeUnit.SECONDS))
        .hasCauseInstanceOf(IOException.class);
    // The byte that arrived before the end can still be read.
    assertThat(receiving.in().read()).isEqualTo(5);
    assertThat(receiving.in().read()).isEqualTo(-1);
    assertThat(all(ends.agent.open())).isEmpty();
  }

  @Test
  void aSenderThatIgnoresTheWindowIsRefused() throws Exception {
    var ends = connect();
    var receiving = ends.front.accept(1);
    ends.agent.send(new LinkMessage.Data(1, new byte[Channel.WINDOW + 1]));
    assertThatThrownBy(ends.front::read)
        .isInstanceOf(IOException.class)
        .hasMessage("channel 1 got more than its window");
    receiving.close();
  }
}
