package braid.launcher.kernel.channels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.selftest.Sweep;
import braid.launcher.machine.SocketOwner;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.LinkedBlockingQueue;
import org.dflib.jjava.jupyter.kernel.KernelConnectionProperties;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;

/// Tests that programs without the key can reach a kernel's sockets but not harm it.
@Execution(ExecutionMode.CONCURRENT)
class ChannelsTest {
  private static final int PATIENCE_MS = 60_000;

  private static final int BEAT_MS = 5_000;
  private static final int MOST_ASKED = 12;

  /// Flags of a ZMTP command frame with an eight-byte size.
  private static final byte LONG_COMMAND = 6;

  private static final int GREETING_BYTES = 64;

  /// Longest pause in which a busy client reads nothing.
  private static final Duration PAUSE = Duration.ofSeconds(4);

  /// More than any client here reads nothing.
  private static final Duration STALLED = Duration.ofMinutes(5);

  /// Connection whose ports the kernel chooses.
  private static final KernelConnectionProperties CONNECTION =
      new KernelConnectionProperties("127.0.0.1", 0, 0, 0, 0, 0, "tcp", "hmac-sha256", "key");

  private static int port(Channels channels, Channel channel) throws IOException {
    return Objects.requireNonNull(channels.ports().get(channel));
  }

  /// Sends the greeting of ZMTP 3.0, then starts a frame of that size.
  private static Socket claiming(int port, long bytes) throws IOException {
    var stranger = new Socket(InetAddress.getLoopbackAddress(), port);
    var greeting = ByteBuffer.allocate(GREETING_BYTES);
    greeting.put(0, (byte) 0xFF).put(9, (byte) 0x7F).put(10, (byte) 3);
    greeting.put(12, "NULL".getBytes(StandardCharsets.US_ASCII));
    stranger.getOutputStream().write(greeting.array());
    stranger.getInputStream().readNBytes(GREETING_BYTES);
    stranger
        .getOutputStream()
        .write(ByteBuffer.allocate(9).put(LONG_COMMAND).putLong(bytes).array());
    return stranger;
  }

  /// Reads until the kernel closes the connection.
  private static void awaitEnd(Socket stranger) throws IOException {
    stranger.setSoTimeout(PATIENCE_MS);
    try {
      stranger.getInputStream().readAllBytes();
    } catch (SocketException e) {
      assertThat(e).hasMessageContaining("reset");
    }
  }

  /// Returns true if the kernel has closed the connection.
  private static boolean hasEnded(Socket stranger) {
    try {
      stranger.setSoTimeout(1);
      stranger.getInputStream().readAllBytes();
      return true;
    } catch (SocketTimeoutException e) {
      return false;
    } catch (IOException e) {
      assertThat(e).hasMessageContaining("reset");
      return true;
    }
  }

  /// Asks with one client after the other: one of JeroMQ's rarely never reads from its connection.
  private static byte[] beat(int port) {
    for (int asked = 1; ; asked++) {
      try (var context = new ZContext()) {
        context.setLinger(0);
        var client = context.createSocket(SocketType.REQ);
        client.setReceiveTimeOut(BEAT_MS);
        client.connect("tcp://127.0.0.1:" + port);
        client.send("still there?");
        var answer = client.recv();
        if (answer != null || asked == MOST_ASKED) {
          return answer;
        }
      }
    }
  }

  @Test
  void aConnectionThatClaimsAHugeFrameEndsAndNothingElse() throws IOException {
    try (var channels = new Channels(CONNECTION, Optional.empty(), (_, _) -> {})) {
      channels.start();
      for (int port :
          List.of(
              port(channels, Channel.SHELL),
              port(channels, Channel.CONTROL),
              port(channels, Channel.STDIN),
              port(channels, Channel.IOPUB),
              port(channels, Channel.HEARTBEAT))) {
        for (int i = 0; i < 2; i++) {
          try (var stranger = claiming(port, 1_400_000_000)) {
            awaitEnd(stranger);
          }
        }
      }
      assertThat(beat(port(channels, Channel.HEARTBEAT))).asString().isEqualTo("still there?");
    }
  }

  private static Message numbered(int number) {
    var content = new JsonObject();
    content.addProperty("number", number);
    content.addProperty("text", "x".repeat(100_000));
    return Message.publication(Optional.empty(), "stream", content);
  }

  /// Returns the number in the next publication.
  private static int next(ZMQ.Socket client) {
    var frames = new ArrayList<String>();
    do {
      var frame = client.recv();
      assertThat(frame).as("a message within the time").isNotNull();
      frames.add(new String(frame, StandardCharsets.UTF_8));
    } while (client.hasReceiveMore());
    return JsonParser.parseString(frames.getLast()).getAsJsonObject().get("number").getAsInt();
  }

  /// Subscribes and waits until the kernel knows the subscriber.
  private static ZMQ.Socket subscriber(ZContext context, Channels channels, int port) {
    var client = context.createSocket(SocketType.SUB);
    client.setRcvHWM(1);
    client.setReceiveTimeOut(50);
    client.subscribe("");
    client.connect("tcp://127.0.0.1:" + port);
    byte[] first = null;
    while (first == null) {
      channels.send(Channel.IOPUB, numbered(-1));
      first = client.recv();
    }
    while (client.hasReceiveMore()) {
      client.recv();
    }
    client.setReceiveTimeOut(PATIENCE_MS);
    return client;
  }

  private static Thread publishing(Channels channels, int count) {
    return Thread.ofPlatform()
        .start(
            () -> {
              for (int i = 0; i < count; i++) {
                channels.awaitRoom();
                channels.send(Channel.IOPUB, numbered(i));
              }
            });
  }

  @Test
  void aClientThatReadsSlowlyHoldsOutputBackAndMissesNone() throws Exception {
    try (var context = new ZContext();
        var channels = new Channels(CONNECTION, Optional.empty(), (_, _) -> {})) {
      context.setLinger(0);
      channels.start();
      var client = subscriber(context, channels, port(channels, Channel.IOPUB));
      int count = Sweep.times(150, 600);
      var publisher = publishing(channels, count);
      assertAllArrive(client, count);
      publisher.join();
    }
  }

  /// Also covers the `idle` that ends a cell: a client that misses it waits for ever.
  @Test
  void aClientThatPausesMissesNone() throws Exception {
    try (var context = new ZContext();
        var channels = new Channels(CONNECTION, Optional.empty(), (_, _) -> {})) {
      context.setLinger(0);
      channels.start();
      var client = subscriber(context, channels, port(channels, Channel.IOPUB));
      var publisher = publishing(channels, 600);
      boolean _ = publisher.join(PAUSE);
      assertAllArrive(client, 600);
      publisher.join();
    }
  }

  private static void assertAllArrive(ZMQ.Socket client, int count) {
    int number = next(client);
    while (number < 0) {
      number = next(client);
    }
    for (int expected = 0; expected < count; expected++) {
      assertThat(number).isEqualTo(expected);
      number = expected == count - 1 ? number : next(client);
    }
  }

  /// The client's queue stays full: it misses messages, and no sender waits for it.
  @Test
  void aClientThatReadsNothingHoldsUpNeitherOutputNorOthers() throws Exception {
    try (var context = new ZContext();
        var channels =
            new Channels(
                CONNECTION,
                Optional.empty(),
                (_, _) -> {},
                PAUSE.dividedBy(2),
                SocketOwner::isOwn)) {
      context.setLinger(0);
      channels.start();
      var stuck = subscriber(context, channels, port(channels, Channel.IOPUB));
      var publisher = publishing(channels, 2000);
      assertThat(beat(port(channels, Channel.HEARTBEAT))).asString().isEqualTo("still there?");
      publisher.join();
      var reader = subscriber(context, channels, port(channels, Channel.IOPUB));
      int number = 0;
      // The last messages of the publisher may still wait for room, and a busy machine may take
      // this
      // client for a stuck one.
      while (number < 2000) {
        channels.send(Channel.IOPUB, numbered(2000));
        number = next(reader);
      }
      assertThat(number).isEqualTo(2000);
      assertThat(stuck.getRcvHWM()).isEqualTo(1);
    }
  }

  /// A sum with the sizes before it would overflow.
  @Test
  void aHugeFrameAfterAnotherEndsItsConnection() throws IOException {
    try (var channels = guarded((_, _) -> {})) {
      channels.start();
      try (var stranger = stranger(port(channels, Channel.SHELL), "DEALER", "")) {
        stranger.getOutputStream().write(frame(true, new byte[100]));
        stranger
            .getOutputStream()
            .write(ByteBuffer.allocate(9).put((byte) 2).putLong(Long.MAX_VALUE).array());
        awaitEnd(stranger);
      }
      assertThat(channels.dropped()).isEqualTo(1);
    }
  }

  private static final String STRANGER = "127.0.0.2";

  /// Channels that trust the owner of 127.0.0.1; this test is a stranger from 127.0.0.2.
  private static Channels guarded(Channels.Receiver receiver) {
    return new Channels(
        CONNECTION,
        Optional.empty(),
        receiver,
        STALLED,
        owner -> !owner.address().equals(STRANGER));
  }

  /// Connects as a stranger, with a greeting and the handshake of ZMTP 3.0.
  private static Socket stranger(int port, String kind, String identity) throws IOException {
    var socket = new Socket();
    socket.bind(new InetSocketAddress(STRANGER, 0));
    socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
    var properties = new ByteArrayOutputStream();
    var out = new DataOutputStream(properties);
    out.writeByte(5);
    out.writeBytes("READY");
    for (var property : List.of(List.of("Socket-Type", kind), List.of("Identity", identity))) {
      out.writeByte(property.getFirst().length());
      out.writeBytes(property.getFirst());
      out.writeInt(property.getLast().length());
      out.writeBytes(property.getLast());
    }
    var greeting = ByteBuffer.allocate(GREETING_BYTES + 2);
    greeting.put(0, (byte) 0xFF).put(9, (byte) 0x7F).put(10, (byte) 3);
    greeting.put(12, "NULL".getBytes(StandardCharsets.US_ASCII));
    greeting.put(GREETING_BYTES, (byte) 4).put(GREETING_BYTES + 1, (byte) properties.size());
    socket.getOutputStream().write(greeting.array());
    socket.getOutputStream().write(properties.toByteArray());
    return socket;
  }

  private static byte[] frame(boolean more, byte[] body) {
    return ByteBuffer.allocate(9 + body.length)
        .put((byte) (more ? 3 : 2))
        .putLong(body.length)
        .put(body)
        .array();
  }

  private static void forged(Socket stranger) throws IOException {
    var frames = List.of("<IDS|MSG>", "0".repeat(64), "{}", "{}", "{}", "{}");
    for (int i = 0; i < frames.size(); i++) {
      var body = frames.get(i).getBytes(StandardCharsets.UTF_8);
      stranger.getOutputStream().write(frame(i < frames.size() - 1, body));
    }
  }

  /// The parts arrive one by one, each far below any limit.
  @Test
  void aMessageThatNeverEndsEndsItsConnection() throws IOException {
    try (var channels = guarded((_, _) -> {})) {
      channels.start();
      var part = frame(true, new byte[64 << 10]);
      try (var stranger = stranger(port(channels, Channel.SHELL), "DEALER", "")) {
        long sent = 0;
        try {
          while (sent < 10L * Message.MAX_BYTES) {
            stranger.getOutputStream().write(part);
            sent += part.length;
          }
        } catch (SocketException e) {
          assertThat(e).hasMessageMatching("(?i).*(reset|broken pipe).*");
        }
        // The system's buffers at both ends come on top.
        assertThat(sent).isLessThan(3L * Message.MAX_BYTES);
      }
      assertThat(beat(port(channels, Channel.HEARTBEAT))).asString().isEqualTo("still there?");
    }
  }

  @Test
  void aStrangerIsDroppedAtItsFirstForgedMessage() throws IOException {
    try (var channels =
        guarded(
            (_, message) -> {
              throw new AssertionError(message);
            })) {
      channels.start();
      for (int port : List.of(port(channels, Channel.SHELL), port(channels, Channel.CONTROL))) {
        try (var stranger = stranger(port, "DEALER", "")) {
          forged(stranger);
          awaitEnd(stranger);
        }
      }
      assertThat(channels.dropped()).isEqualTo(2);
      assertThat(beat(port(channels, Channel.HEARTBEAT))).asString().isEqualTo("still there?");
    }
  }

  /// Trusted clients read the messages in order, so the stranger was passed over.
  @Test
  void aStrangerGetsNoOutput() throws IOException {
    try (var context = new ZContext();
        var channels = guarded((_, _) -> {})) {
      context.setLinger(0);
      channels.start();
      try (var stranger = stranger(port(channels, Channel.IOPUB), "SUB", "")) {
        stranger.getOutputStream().write(frame(false, new byte[] {1}));
        var client = subscriber(context, channels, port(channels, Channel.IOPUB));
        channels.send(Channel.IOPUB, numbered(7));
        int number = next(client);
        while (number != 7) {
          number = next(client);
        }
        // The greeting, and READY with the type of the socket.
        assertThat(stranger.getInputStream().available()).isLessThan(2 * GREETING_BYTES);
      }
    }
  }

  private static Message request(ZMQ.Socket client, String name) {
    var codec = codec();
    var header = new JsonObject();
    header.addProperty("msg_id", name);
    header.addProperty("msg_type", "kernel_info_request");
    var empty = new JsonObject();
    var message = new Message(List.of(), header, empty, empty, empty, List.of());
    var frames = codec.encode(message);
    for (int i = 0; i < frames.size(); i++) {
      client.send(frames.get(i), i < frames.size() - 1 ? ZMQ.SNDMORE : 0);
    }
    return message;
  }

  private static MessageCodec codec() {
    try {
      return new MessageCodec("hmac-sha256", "key");
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  void aStrangerTakesNoIdentityOfAClientThatLives() throws Exception {
    var requests = new LinkedBlockingQueue<Message>();
    try (var context = new ZContext();
        var channels = guarded((_, message) -> requests.add(message))) {
      context.setLinger(0);
      channels.start();
      var client = context.createSocket(SocketType.DEALER);
      client.setIdentity("mine".getBytes(StandardCharsets.US_ASCII));
      client.setReceiveTimeOut(PATIENCE_MS);
      client.connect("tcp://127.0.0.1:" + port(channels, Channel.SHELL));
      request(client, "1");
      var received = requests.take();
      try (var stranger = stranger(port(channels, Channel.SHELL), "DEALER", "mine")) {
        awaitEnd(stranger);
      }
      channels.send(Channel.SHELL, Message.reply(received, "kernel_info_reply", new JsonObject()));
      assertThat(client.recv()).asString().isEqualTo("<IDS|MSG>");
      // The same owner may come back under its name, as a front end that was restarted does.
      var again = context.createSocket(SocketType.DEALER);
      again.setIdentity("mine".getBytes(StandardCharsets.US_ASCII));
      again.setReceiveTimeOut(PATIENCE_MS);
      again.connect("tcp://127.0.0.1:" + port(channels, Channel.SHELL));
      request(again, "2");
      channels.send(
          Channel.SHELL, Message.reply(requests.take(), "kernel_info_reply", new JsonObject()));
      assertThat(again.recv()).asString().isEqualTo("<IDS|MSG>");
    }
  }

  /// The oldest are closed, so that one owner cannot keep all others out.
  @Test
  void strangersHaveFewConnections() throws IOException {
    var strangers = new ArrayList<Socket>();
    try (var channels = guarded((_, _) -> {})) {
      channels.start();
      for (int i = 0; i < 200; i++) {
        strangers.add(stranger(port(channels, Channel.CONTROL), "DEALER", "" + i));
      }
      // Which ones stay depends on the user of each, whom Linux's table of sockets may not have
      // yet.
      var open = new ArrayList<>(strangers);
      while (open.size() > 64) {
        open.removeIf(ChannelsTest::hasEnded);
      }
      assertThat(beat(port(channels, Channel.HEARTBEAT))).asString().isEqualTo("still there?");
    } finally {
      for (var stranger : strangers) {
        stranger.close();
      }
    }
  }

  /// A key vouches for everybody at its address, though its socket may be another one.
  @Test
  void aSignedMessageMakesItsOwnerTrusted() throws Exception {
    var requests = new LinkedBlockingQueue<Message>();
    try (var context = new ZContext();
        var channels =
            new Channels(
                CONNECTION, Optional.empty(), (_, m) -> requests.add(m), STALLED, _ -> false)) {
      context.setLinger(0);
      channels.start();
      var client = context.createSocket(SocketType.DEALER);
      client.connect("tcp://127.0.0.1:" + port(channels, Channel.SHELL));
      request(client, "1");
      assertThat(requests.take().id()).isEqualTo("1");
      var subscriber = subscriber(context, channels, port(channels, Channel.IOPUB));
      channels.send(Channel.IOPUB, numbered(3));
      assertThat(next(subscriber)).isLessThanOrEqualTo(3);
    }
  }

  /// Opens more connections than the kernel's memory can serve at the size that each may claim.
  @Test
  void claimedSizesReserveNoMemory() throws Exception {
    var strangers = new ArrayList<Socket>();
    try (var channels = guarded((_, _) -> {})) {
      channels.start();
      var start = ByteBuffer.allocate(10).put((byte) 2).putLong(Message.MAX_BYTES / 2);
      long before = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getMax();
      for (long claimed = 0; claimed < 2 * before; claimed += Message.MAX_BYTES / 2) {
        var stranger = stranger(port(channels, Channel.SHELL), "DEALER", "");
        stranger.getOutputStream().write(start.array());
        strangers.add(stranger);
      }
      assertThat(beat(port(channels, Channel.HEARTBEAT))).asString().isEqualTo("still there?");
    } finally {
      for (var stranger : strangers) {
        stranger.close();
      }
    }
  }

  @Test
  void aReceiverThatFailsEndsTheKernelWithItsReason() throws Exception {
    var failure = new IllegalStateException("broken");
    try (var context = new ZContext();
        var channels =
            guarded(
                (_, _) -> {
                  throw failure;
                })) {
      context.setLinger(0);
      channels.start();
      var client = context.createSocket(SocketType.DEALER);
      client.connect("tcp://127.0.0.1:" + port(channels, Channel.SHELL));
      request(client, "1");
      assertThatThrownBy(channels.ended()::join).hasCause(failure);
    }
  }
}
