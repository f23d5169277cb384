package braid.launcher.kernel.channels;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.selftest.Sweep;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.dflib.jjava.jupyter.kernel.KernelConnectionProperties;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;

/// Tests that programs without the key can reach a kernel's sockets but not harm it.
@Execution(ExecutionMode.CONCURRENT)
class ChannelsTest {
  private static final int PATIENCE_MS = 10_000;

  private static final int MOST_ASKED = 4;

  /// Flags of a ZMTP command frame with an eight-byte size.
  private static final byte LONG_COMMAND = 6;

  private static final int GREETING_BYTES = 64;

  /// Longest pause in which a busy client reads nothing.
  private static final Duration PAUSE = Duration.ofSeconds(4);

  @TempDir Path directory;

  private static KernelConnectionProperties connection() throws IOException {
    var ports = new ArrayList<Integer>();
    var open = new ArrayList<ServerSocket>();
    for (int i = 0; i < 5; i++) {
      var socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
      open.add(socket);
      ports.add(socket.getLocalPort());
    }
    for (var socket : open) {
      socket.close();
    }
    return new KernelConnectionProperties(
        "127.0.0.1",
        ports.get(0),
        ports.get(1),
        ports.get(2),
        ports.get(3),
        ports.get(4),
        "tcp",
        "hmac-sha256",
        "key");
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

  /// Asks with one client after the other: one of JeroMQ's rarely never reads from its connection.
  private static byte[] beat(int port) {
    for (int asked = 1; ; asked++) {
      try (var context = new ZContext()) {
        context.setLinger(0);
        var client = context.createSocket(SocketType.REQ);
        client.setReceiveTimeOut(PATIENCE_MS / 2);
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
    var connection = connection();
    try (var channels = new Channels(connection, (_, _) -> {})) {
      channels.start();
      for (int port :
          List.of(
              connection.getShellPort(),
              connection.getControlPort(),
              connection.getStdinPort(),
              connection.getIopubPort(),
              connection.getHbPort())) {
        for (int i = 0; i < 2; i++) {
          try (var stranger = claiming(port, 1_400_000_000)) {
            awaitEnd(stranger);
          }
        }
      }
      assertThat(beat(connection.getHbPort())).asString().isEqualTo("still there?");
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
      channels.send(Channels.Channel.IOPUB, numbered(-1));
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
                channels.send(Channels.Channel.IOPUB, numbered(i));
              }
            });
  }

  @Test
  void aClientThatReadsSlowlyHoldsOutputBackAndMissesNone() throws Exception {
    var connection = connection();
    try (var context = new ZContext();
        var channels = new Channels(connection, (_, _) -> {})) {
      context.setLinger(0);
      channels.start();
      var client = subscriber(context, channels, connection.getIopubPort());
      int count = Sweep.times(150, 600);
      var publisher = publishing(channels, count);
      assertAllArrive(client, count);
      publisher.join();
    }
  }

  /// Also covers the `idle` that ends a cell: a client that misses it waits for ever.
  @Test
  void aClientThatPausesMissesNone() throws Exception {
    var connection = connection();
    try (var context = new ZContext();
        var channels = new Channels(connection, (_, _) -> {})) {
      context.setLinger(0);
      channels.start();
      var client = subscriber(context, channels, connection.getIopubPort());
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
    var connection = connection();
    try (var context = new ZContext();
        var channels = new Channels(connection, (_, _) -> {}, PAUSE.dividedBy(2))) {
      context.setLinger(0);
      channels.start();
      var stuck = subscriber(context, channels, connection.getIopubPort());
      var publisher = publishing(channels, 2000);
      assertThat(beat(connection.getHbPort())).asString().isEqualTo("still there?");
      publisher.join();
      var other = subscriber(context, channels, connection.getIopubPort());
      channels.send(Channels.Channel.IOPUB, numbered(2000));
      int number = next(other);
      // The last messages of the publisher may still wait for room.
      while (number < 2000) {
        number = next(other);
      }
      assertThat(number).isEqualTo(2000);
      assertThat(stuck.getRcvHWM()).isEqualTo(1);
    }
  }

  /// Opens more connections than the kernel's memory can serve at the size that each may claim.
  @Test
  void aKernelWhoseSocketsBreakEndsAndSaysWhy() throws Exception {
    var connection = connection();
    var file = Files.writeString(directory.resolve("connection.json"), connection.toJsonString());
    var output = directory.resolve("said.txt");
    var kernel =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "-Xmx128m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                System.getProperty("java.class.path"),
                "braid.launcher.cli.Braid",
                "kernel",
                "start",
                file.toString(),
                "-n",
                "1")
            .directory(directory.toFile())
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
    var strangers = new ArrayList<Socket>();
    try {
      assertThat(beat(connection.getHbPort())).asString().isEqualTo("still there?");
      while (kernel.isAlive() && strangers.size() < 100) {
        try {
          strangers.add(claiming(connection.getShellPort(), Channels.MAX_FRAME_BYTES));
        } catch (IOException e) {
          break; // nobody accepts any more
        }
      }
      assertThat(kernel.waitFor(240, TimeUnit.SECONDS)).as(Files.readString(output)).isTrue();
      assertThat(kernel.exitValue()).as(Files.readString(output)).isEqualTo(1);
      assertThat(output)
          .content()
          .contains("braid: IOException: the kernel's sockets broke: java.lang.OutOfMemoryError");
    } finally {
      kernel.destroyForcibly().waitFor();
      for (var stranger : strangers) {
        stranger.close();
      }
    }
  }
}
