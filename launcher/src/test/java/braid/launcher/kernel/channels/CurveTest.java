package braid.launcher.kernel.channels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import com.google.gson.JsonObject;
import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.dflib.jjava.jupyter.kernel.KernelConnectionProperties;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;

/// Tests the kernel's sockets in CURVE with the clients of JeroMQ, which has its own
/// implementation.
@Execution(ExecutionMode.CONCURRENT)
class CurveTest {
  private static final int PATIENCE_MS = 20_000;
  private static final int GREETING_BYTES = 64;

  /// One of JeroMQ's connections rarely never reads, in any mechanism; it then connects again.
  private static final int HANDSHAKE_MS = 2000;

  private static final byte[] GARBAGE = new byte[200];

  private final ZMQ.Curve.KeyPair server = ZMQ.Curve.generateKeyPair();
  private final ZMQ.Curve.KeyPair client = ZMQ.Curve.generateKeyPair();
  private final LinkedBlockingQueue<Message> requests = new LinkedBlockingQueue<>();
  private final LinkedBlockingQueue<Long> oversized = new LinkedBlockingQueue<>();
  private final ZContext context = new ZContext();
  private final Channels channels =
      new Channels(
          new KernelConnectionProperties("127.0.0.1", 0, 0, 0, 0, 0, "tcp", "hmac-sha256", "key"),
          Optional.of(CurveKeys.of(server.publicKey, server.secretKey)),
          new Channels.Receiver() {
            @Override
            public void receive(Channel channel, Message message) {
              requests.add(message);
            }

            @Override
            public void tooLarge(Channel channel, Message message, long bytes) {
              oversized.add(bytes);
            }
          });

  @BeforeEach
  void start() {
    context.setLinger(0);
    channels.start();
  }

  @AfterEach
  void close() {
    context.close();
    channels.close();
  }

  private int port(Channel channel) throws IOException {
    return Objects.requireNonNull(channels.ports().get(channel));
  }

  private ZMQ.Socket connected(SocketType type, int port, String serverKey) {
    var socket = context.createSocket(type);
    socket.setReceiveTimeOut(PATIENCE_MS);
    socket.setHandshakeIvl(HANDSHAKE_MS);
    socket.setCurvePublicKey(ZMQ.Curve.z85Decode(client.publicKey));
    socket.setCurveSecretKey(ZMQ.Curve.z85Decode(client.secretKey));
    socket.setCurveServerKey(ZMQ.Curve.z85Decode(serverKey));
    if (type == SocketType.SUB) {
      socket.subscribe("");
    }
    socket.connect("tcp://127.0.0.1:" + port);
    return socket;
  }

  private void assertServed() throws IOException {
    var beating = connected(SocketType.REQ, port(Channel.HEARTBEAT), server.publicKey);
    beating.send("still there?");
    assertThat(beating.recv()).asString().isEqualTo("still there?");
    beating.close();
  }

  private static void request(ZMQ.Socket socket, String name, int bytes) {
    var header = new JsonObject();
    header.addProperty("msg_id", name);
    header.addProperty("msg_type", "execute_request");
    var content = new JsonObject();
    content.addProperty("code", "x".repeat(bytes));
    var empty = new JsonObject();
    var frames = codec().encode(new Message(List.of(), header, empty, empty, content, List.of()));
    for (int i = 0; i < frames.size(); i++) {
      socket.send(frames.get(i), i < frames.size() - 1 ? ZMQ.SNDMORE : 0);
    }
  }

  private static MessageCodec codec() {
    return MessageCodec.of(
        new KernelConnectionProperties("", 0, 0, 0, 0, 0, "tcp", "hmac-sha256", "key"));
  }

  private static List<byte[]> received(ZMQ.Socket socket) {
    var frames = new ArrayList<byte[]>();
    do {
      var frame = socket.recv();
      assertThat(frame).as("a message in time").isNotNull();
      frames.add(frame);
    } while (socket.hasReceiveMore());
    return frames;
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 1000, Message.MAX_BYTES - 1000})
  void aRequestAndItsReplyKeepTheirContent(int bytes) throws Exception {
    var socket = connected(SocketType.DEALER, port(Channel.SHELL), server.publicKey);
    request(socket, "1", bytes);
    var request = requests.take();
    assertThat(request.content().get("code").getAsString()).hasSize(bytes).matches("x+");
    channels.send(Channel.SHELL, Message.reply(request, "execute_reply", request.content()));
    var reply = codec().decode(received(socket));
    assertThat(reply.content()).isEqualTo(request.content());
    assertThat(reply.parent()).isEqualTo(request.header());
  }

  @Test
  void everyChannelIsServed() throws Exception {
    for (var channel : List.of(Channel.SHELL, Channel.CONTROL, Channel.STDIN)) {
      request(connected(SocketType.DEALER, port(channel), server.publicKey), channel.name(), 1);
      assertThat(requests.take().id()).isEqualTo(channel.name());
    }
    assertServed();
  }

  /// Sizes around the borders of frames and of the buffers for reading.
  @Test
  void publicationsArriveInOrder() throws Exception {
    var socket = connected(SocketType.SUB, port(Channel.IOPUB), server.publicKey);
    var welcome = codec().decode(received(socket));
    assertThat(welcome.type()).isEqualTo("iopub_welcome");
    assertThat(welcome.content().get("subscription").getAsString()).isEmpty();
    var sizes = List.of(0, 1, 190, 221, 222, 223, 254, 255, 256, 65_500, 65_536, 17 << 20);
    for (int size : sizes) {
      var content = new JsonObject();
      content.addProperty("text", "y".repeat(size));
      channels.send(Channel.IOPUB, Message.publication(Optional.empty(), "stream", content));
    }
    for (int size : sizes) {
      var content = codec().decode(received(socket)).content();
      assertThat(content.get("text").getAsString()).hasSize(size).matches("y*");
    }
  }

  @Test
  void aMessageAboveTheLimitIsReported() throws Exception {
    var socket = connected(SocketType.DEALER, port(Channel.SHELL), server.publicKey);
    request(socket, "1", Message.MAX_BYTES + 1000);
    assertThat(oversized.take()).isGreaterThan(Message.MAX_BYTES);
    request(socket, "2", 1);
    assertThat(requests.take().id()).isEqualTo("2");
  }

  @Test
  void clientsWithoutCurveAreRefused() throws Exception {
    var plain = context.createSocket(SocketType.DEALER);
    plain.connect("tcp://127.0.0.1:" + port(Channel.SHELL));
    request(plain, "1", 1);
    var greeting = ByteBuffer.allocate(GREETING_BYTES);
    greeting.put(0, (byte) 0xFF).put(9, (byte) 0x7F).put(10, (byte) 3);
    assertRefused(List.of(greeting.put(12, Peer.bytes("NULL")).array()));
    assertServed();
    assertThat(requests).isEmpty();
  }

  @Test
  void clientsWithAnotherServerKeyAreRefused() throws Exception {
    var stranger = connected(SocketType.DEALER, port(Channel.SHELL), client.publicKey);
    request(stranger, "1", 1);
    awaitDropped();
    assertServed();
    assertThat(requests).isEmpty();
  }

  private void awaitDropped() {
    var limit = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PATIENCE_MS);
    while (channels.dropped() == 0 && System.nanoTime() < limit) {
      Thread.onSpinWait();
    }
    assertThat(channels.dropped()).as("connections dropped").isPositive();
  }

  /// Changes what a client sends, frame by frame; the greeting is the first, then come HELLO,
  /// INITIATE and messages.
  @FunctionalInterface
  private interface Change {
    List<byte[]> of(int number, byte[] frame);
  }

  /// Stands between a client and the kernel.
  private final class Tap implements Closeable {
    final List<byte[]> seen = new CopyOnWriteArrayList<>();
    final CompletableFuture<Void> kernelEnded = new CompletableFuture<>();
    private final ServerSocket door = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());

    Tap(Change change) throws IOException {
      Thread.ofVirtual().start(() -> forwardAll(change));
    }

    /// Forwards one connection after the other, until the kernel ends one.
    private void forwardAll(Change change) {
      while (!kernelEnded.isDone() && !door.isClosed()) {
        try (var socket = door.accept();
            var kernel = new Socket(InetAddress.getLoopbackAddress(), port(Channel.SHELL))) {
          var answers = Thread.ofVirtual().start(() -> answer(kernel, socket));
          forward(change, socket, kernel);
          answers.join();
        } catch (IOException | InterruptedException e) {
          // the test has ended
        }
      }
    }

    private void forward(Change change, Socket socket, Socket kernel) throws IOException {
      seen.clear();
      try {
        var input = new DataInputStream(socket.getInputStream());
        for (int number = 0; ; number++) {
          var frame = number == 0 ? input.readNBytes(GREETING_BYTES) : frame(input);
          seen.add(frame);
          for (var changed : change.of(number, frame)) {
            send(changed, kernel);
          }
        }
      } catch (IOException e) {
        socket.close(); // one of both ends has closed its connection
        kernel.shutdownInput();
      }
    }

    private void send(byte[] frame, Socket kernel) throws IOException {
      try {
        kernel.getOutputStream().write(frame);
      } catch (SocketException e) {
        kernelEnded.complete(null);
        throw e;
      }
    }

    private void answer(Socket kernel, Socket socket) {
      try {
        kernel.getInputStream().transferTo(socket.getOutputStream());
      } catch (IOException e) {
        // ended by the client, or reset by the kernel
      }
      if (!socket.isClosed()) {
        kernelEnded.complete(null);
        closeQuietly(socket);
      }
    }

    private static byte[] frame(DataInputStream input) throws IOException {
      int flags = input.read();
      if (flags < 0) {
        throw new EOFException();
      }
      var head = input.readNBytes((flags & 2) == 0 ? 1 : 8);
      long size = head.length == 1 ? head[0] & 0xFF : ByteBuffer.wrap(head).getLong();
      var all = new ByteArrayOutputStream();
      all.write(flags);
      all.write(head);
      all.write(input.readNBytes((int) size));
      return all.toByteArray();
    }

    private static void closeQuietly(Socket socket) {
      try {
        socket.close();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    @Override
    public void close() throws IOException {
      door.close();
    }
  }

  /// Sends two requests through a tap; returns the ids of those that the kernel receives before it
  /// ends the connection.
  private List<String> tapped(Change change) throws Exception {
    try (var tap = new Tap(change)) {
      var socket = connected(SocketType.DEALER, tap.door.getLocalPort(), server.publicKey);
      request(socket, "1", 1);
      request(socket, "2", 1);
      tap.kernelEnded.get(PATIENCE_MS, TimeUnit.MILLISECONDS);
    }
    assertThat(channels.dropped()).isEqualTo(1);
    assertServed();
    return requests.stream().map(Message::id).toList();
  }

  private static final int HELLO = 1;
  private static final int INITIATE = 2;
  private static final int FIRST_MESSAGE = 3;
  private static final int FRAMES_OF_A_REQUEST = 6;

  @Test
  void aFrameThatIsSentTwiceEndsTheConnection() throws Exception {
    int last = FIRST_MESSAGE + FRAMES_OF_A_REQUEST - 1;
    assertThat(tapped((number, frame) -> number == last ? List.of(frame, frame) : List.of(frame)))
        .containsExactly("1");
  }

  @Test
  void swappedFramesEndTheConnection() throws Exception {
    var held = new ArrayList<byte[]>();
    assertThat(
            tapped(
                (number, frame) -> {
                  held.subList(number, held.size()).clear();
                  held.add(frame);
                  return number < FIRST_MESSAGE
                      ? List.of(frame)
                      : number == FIRST_MESSAGE
                          ? List.of()
                          : number == FIRST_MESSAGE + 1
                              ? List.of(frame, held.get(FIRST_MESSAGE))
                              : List.of(frame);
                }))
        .isEmpty();
  }

  /// Every part of a message is covered: the nonce, the authenticator, the flags and the body.
  @ParameterizedTest
  @ValueSource(ints = {2, 10, 17, 18, 33, 34, 35, 42})
  void aChangedByteOfAMessageEndsTheConnection(int position) throws Exception {
    assertThat(
            tapped(
                (number, frame) ->
                    List.of(number == FIRST_MESSAGE ? flipped(frame, position) : frame)))
        .isEmpty();
  }

  /// Commands of the handshake: their names, and their first and last bytes.
  @ParameterizedTest
  @ValueSource(ints = {0, 80, 150, 199})
  void aChangedByteOfTheHandshakeEndsTheConnection(int position) throws Exception {
    for (int changed : List.of(HELLO, INITIATE)) {
      try (var tap =
          new Tap(
              (number, frame) ->
                  List.of(
                      number == changed
                          // The padding of HELLO means nothing.
                          ? flipped(
                              frame,
                              frame.length - 200 + Math.max(position, changed == HELLO ? 81 : 0))
                          : frame))) {
        request(connected(SocketType.DEALER, tap.door.getLocalPort(), server.publicKey), "1", 1);
        tap.kernelEnded.get(PATIENCE_MS, TimeUnit.MILLISECONDS);
      }
    }
    assertThat(channels.dropped()).isEqualTo(2);
    assertServed();
    assertThat(requests).isEmpty();
  }

  private static byte[] flipped(byte[] frame, int position) {
    var changed = frame.clone();
    changed[position] ^= 1;
    return changed;
  }

  /// A recorded connection opens nothing, as a whole or in parts.
  @Test
  void aRecordedConnectionCannotBeRepeated() throws Exception {
    try (var tap = new Tap((_, frame) -> List.of(frame))) {
      request(connected(SocketType.DEALER, tap.door.getLocalPort(), server.publicKey), "1", 1);
      assertThat(requests.take().id()).isEqualTo("1");
      var seen = List.copyOf(tap.seen);
      assertRefused(seen);
      assertRefused(List.of(seen.get(0), seen.get(INITIATE)));
      assertRefused(List.of(seen.get(0), seen.get(HELLO), seen.get(HELLO)));
      assertRefused(List.of(seen.get(0), seen.get(HELLO), seen.get(FIRST_MESSAGE)));
    }
    assertServed();
    assertThat(requests).isEmpty();
  }

  @Test
  void commandsThatAreCutOffAreRefused() throws Exception {
    try (var tap = new Tap((_, frame) -> List.of(frame))) {
      request(connected(SocketType.DEALER, tap.door.getLocalPort(), server.publicKey), "1", 1);
      assertThat(requests.take().id()).isEqualTo("1");
      var greeting = tap.seen.get(0);
      var hello = tap.seen.get(HELLO);
      for (int bytes : List.of(0, 1, 6, 7, 199)) {
        assertRefused(List.of(greeting, command(Arrays.copyOfRange(hello, 2, 2 + bytes))));
      }
      var initiate = tap.seen.get(INITIATE);
      int head = initiate.length < 258 ? 2 : 9;
      for (int bytes : List.of(9, 9 + 96, 9 + 96 + 8 + 16, 255)) {
        assertRefused(
            List.of(greeting, hello, command(Arrays.copyOfRange(initiate, head, head + bytes))));
      }
      assertRefused(List.of(greeting, command(GARBAGE)));
      assertRefused(List.of(GARBAGE));
    }
    assertServed();
  }

  private static byte[] command(byte[] body) {
    return ByteBuffer.allocate(2 + body.length)
        .put((byte) 4)
        .put((byte) body.length)
        .put(body)
        .array();
  }

  private void assertRefused(List<byte[]> frames) throws IOException {
    long before = channels.dropped();
    try (var stranger = new Socket(InetAddress.getLoopbackAddress(), port(Channel.SHELL))) {
      stranger.setSoTimeout(PATIENCE_MS);
      for (var frame : frames) {
        stranger.getOutputStream().write(frame);
      }
      stranger.getInputStream().readAllBytes();
    } catch (SocketException e) {
      assertThat(e).hasMessageMatching("(?i).*(reset|broken pipe).*");
    }
    assertThat(channels.dropped()).isEqualTo(before + 1);
  }

  @Test
  void keysThatAreNoPairAreRefused() {
    assertThatThrownBy(() -> CurveKeys.of(server.publicKey, client.secretKey))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("curve_publickey must be the public key of curve_secretkey");
  }

  /// A character that Z85 lacks, a group above 32 bits, and wrong lengths.
  @Test
  void keysThatAreNotZ85AreNamedWithoutTheirText() {
    var secret = server.secretKey;
    for (var wrong :
        List.of(
            "",
            secret.substring(1),
            secret + "0",
            "\"" + secret.substring(1),
            "%%%%%" + secret.substring(5))) {
      assertThatThrownBy(() -> CurveKeys.of(server.publicKey, wrong))
          .isInstanceOf(BraidException.class)
          .hasMessageContaining("curve_secretkey must be a key of 40 characters in Z85")
          .hasMessageNotContaining(secret.substring(6));
    }
  }
}
