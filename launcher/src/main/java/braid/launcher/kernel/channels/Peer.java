package braid.launcher.kernel.channels;

import braid.launcher.machine.SocketOwner;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// A client's connection in ZMTP 3.0, the protocol of ZeroMQ's sockets, with a [Mechanism] of
/// security:
///
/// ```
/// greeting: FF 8 bytes 7F | 3 0 | mechanism in 20 bytes | 1 of a server in CURVE, 0 in 31 bytes
/// frame:    flags | size in 1 or 8 bytes | body, which CURVE seals
/// message:  frames; all but the last have the flag MORE
/// ```
///
/// Nothing is reserved for a size that a client only claims: memory grows with the bytes that have
/// arrived, up to the size of a whole message.
final class Peer {
  /// Receives the messages of a connection.
  interface Sink {
    /// The handshake is complete, and the identity known.
    void ready(Peer peer) throws IOException;

    /// The client wants publications of one more topic.
    default void subscribed(Peer peer, byte[] topic) {}

    void message(Peer peer, List<byte[]> frames) throws IOException;

    /// Returns the largest message that is kept.
    int limit(Peer peer);

    /// Returns the check of a message that is too large to be kept, of a client that is answered.
    MessageCodec.Skim tooLarge(Peer peer, List<byte[]> frames, long bytes) throws IOException;

    void skimmed(Peer peer, MessageCodec.Skim message, long bytes) throws IOException;
  }

  static final int MORE = 1;
  private static final int LONG = 2;
  static final int COMMAND = 4;

  private static final int GREETING_BYTES = 64;
  private static final int VERSION_AT = 10;
  private static final int MECHANISM_AT = 12;
  private static final int SERVER_AT = 32;
  private static final byte VERSION = 3;

  /// Bytes that may wait for a client that does not read.
  static final long MAX_QUEUED_BYTES = 64 << 20;

  private static final int MAX_COMMAND_BYTES = 4096;
  private static final int MAX_ANSWERS = 128;
  private static final int FIRST_BODY_BYTES = 1024;

  /// Topics of one subscriber; a Jupyter client has one, the empty topic.
  private static final int MAX_TOPICS = 64;

  /// Counted for each frame, for the memory of its list entry.
  private static final int FRAME_BYTES = 64;

  /// Largest message that is read to its end to be answered.
  private static final long MAX_SKIMMED_BYTES = 1L << 32;

  final Channel channel;
  final SocketOwner owner;
  final SocketChannel socket;
  final SelectionKey key;
  byte[] identity;

  /// Time since when its queue of publications is full; 0 if it has room.
  long fullSinceNanos;

  /// Is skipped by publications until it has room again.
  boolean stalled;

  private final Sink sink;
  private final Mechanism mechanism;
  private final ByteBuffer head = ByteBuffer.allocate(GREETING_BYTES);
  private final List<byte[]> topics = new ArrayList<>();
  private final ArrayDeque<ByteBuffer> queue = new ArrayDeque<>();

  /// Bytes that the mechanism has sealed; nothing is queued before the handshake is complete.
  private ByteBuffer leaving = ByteBuffer.allocate(0);

  private boolean greeted;
  private boolean ready;
  private int flags;
  private byte @Nullable [] body;
  private long bodyBytes;
  private long arrived;
  private List<byte[]> frames = new ArrayList<>();
  private long held;
  private long messageBytes;
  private MessageCodec.@Nullable Skim skim;
  private long queuedBytes;

  Peer(
      Channel channel,
      SocketOwner owner,
      SocketChannel socket,
      SelectionKey key,
      byte[] name,
      Optional<CurveKeys> keys,
      Sink s) {
    this.channel = channel;
    this.owner = owner;
    this.socket = socket;
    this.key = key;
    identity = name;
    sink = s;
    var kind = bytes(channel.socketType);
    var properties = ByteBuffer.allocate(16 + kind.length).put((byte) 11).put(bytes("Socket-Type"));
    properties.putInt(kind.length).put(kind).flip();
    mechanism =
        keys.<Mechanism>map(curve -> new Curve(curve, properties.array()))
            .orElseGet(() -> new Mechanism.Null(command("READY", properties)));
    var greeting = ByteBuffer.allocate(GREETING_BYTES);
    greeting.put(0, (byte) 0xFF).put(VERSION_AT - 1, (byte) 0x7F).put(VERSION_AT, VERSION);
    greeting.put(MECHANISM_AT, bytes(mechanism.name()));
    greeting.put(SERVER_AT, (byte) (keys.isPresent() ? 1 : 0));
    sendUnsealed(greeting);
    mechanism.opening().ifPresent(this::sendUnsealed);
  }

  /// Returns the bytes of the unfinished message.
  long held() {
    return held + (body == null ? 0 : body.length);
  }

  List<byte[]> topics() {
    return topics;
  }

  boolean wants(byte[] topic) {
    return topics.stream()
        .anyMatch(
            prefix ->
                prefix.length <= topic.length
                    && Arrays.equals(prefix, 0, prefix.length, topic, 0, prefix.length));
  }

  int queued() {
    return queue.size() + (leaving.hasRemaining() ? 1 : 0);
  }

  long queuedBytes() {
    return queuedBytes + leaving.remaining();
  }

  private void sendUnsealed(ByteBuffer command) {
    leaving =
        ByteBuffer.allocate(leaving.remaining() + command.remaining())
            .put(leaving)
            .put(command)
            .flip();
  }

  void send(ByteBuffer message) {
    var own = message.duplicate();
    queue.add(own);
    queuedBytes += own.remaining();
  }

  /// Queues an answer that costs the client nothing to ask for.
  ///
  /// @throws IOException if it reads none
  void answer(ByteBuffer message) throws IOException {
    send(message);
    if (queue.size() > MAX_ANSWERS) {
      throw new IOException("it reads no answers");
    }
  }

  /// Writes what the connection takes now. Returns true if nothing is left.
  boolean flush() throws IOException {
    while (leaving.hasRemaining() || !queue.isEmpty()) {
      if (!leaving.hasRemaining()) {
        var first = queue.removeFirst();
        queuedBytes -= first.remaining();
        leaving = mechanism.seal(first);
      }
      socket.write(leaving);
      if (leaving.hasRemaining()) {
        return false;
      }
    }
    return true;
  }

  /// Returns a message as it is sent.
  static ByteBuffer encode(List<byte[]> frames) {
    int bytes = frames.stream().mapToInt(frame -> Math.addExact(frame.length, 9)).sum();
    var message = ByteBuffer.allocate(bytes);
    for (int i = 0; i < frames.size(); i++) {
      put(message, i < frames.size() - 1 ? MORE : 0, frames.get(i));
    }
    return message.flip();
  }

  private static void put(ByteBuffer to, int flags, byte[] body) {
    putHead(to, flags, body.length);
    to.put(body);
  }

  /// Puts flags and size of a frame.
  static void putHead(ByteBuffer to, int flags, int size) {
    if (size < 256) {
      to.put((byte) flags).put((byte) size);
    } else {
      to.put((byte) (flags | LONG)).putLong(size);
    }
  }

  /// Returns the size that follows the flags of an encoded frame.
  static int size(int flags, ByteBuffer frame) {
    return (flags & LONG) != 0 ? Math.toIntExact(frame.getLong()) : frame.get() & 0xFF;
  }

  static ByteBuffer command(String name, ByteBuffer data) {
    var body = ByteBuffer.allocate(1 + name.length() + data.remaining());
    body.put((byte) name.length()).put(bytes(name)).put(data);
    var frame = ByteBuffer.allocate(body.capacity() + 9);
    put(frame, COMMAND, body.array());
    return frame.flip();
  }

  /// Takes bytes that have arrived.
  ///
  /// @throws IOException if they break the protocol or a limit: the connection must be closed
  void receive(ByteBuffer bytes) throws IOException {
    while (bytes.hasRemaining()) {
      if (bodyBytes < 0 || !greeted) {
        head.put(bytes.get());
        if (!head.hasRemaining()) {
          headIsThere();
        }
      } else {
        take(bytes);
      }
      if (bodyBytes >= 0 && arrived == bodyBytes && greeted) {
        frameIsThere();
      }
    }
  }

  private void headIsThere() throws IOException {
    if (!greeted) {
      var name = Arrays.copyOf(bytes(mechanism.name()), SERVER_AT - MECHANISM_AT);
      boolean known =
          head.get(0) == (byte) 0xFF
              && (head.get(VERSION_AT - 1) & 1) == 1
              && head.get(VERSION_AT) >= VERSION
              && head.slice(MECHANISM_AT, name.length).equals(ByteBuffer.wrap(name));
      if (!known) {
        throw new IOException("it does not speak ZMTP 3 with " + mechanism.name());
      }
      greeted = true;
      awaitHead();
      return;
    }
    flags = head.get(0);
    int sizeEnd = (flags & LONG) != 0 ? 9 : 2;
    if (head.limit() < sizeEnd) {
      head.limit(sizeEnd);
      return;
    }
    long size = (flags & LONG) != 0 ? head.getLong(1) : head.get(1) & 0xFF;
    int sealed = ready ? mechanism.headBytes() : 0;
    if (size < sealed) {
      throw new IOException("it claims a frame of %d bytes".formatted(size));
    }
    if (head.limit() < sizeEnd + sealed) {
      head.limit(sizeEnd + sealed);
      return;
    }
    if (ready) {
      flags = mechanism.openHead(flags, head.slice(sizeEnd, sealed));
    }
    bodyBytes = size - sealed;
    arrived = 0;
    boolean isCommand = (flags & COMMAND) != 0;
    if (bodyBytes > (isCommand ? MAX_COMMAND_BYTES : MAX_SKIMMED_BYTES)) {
      throw new IOException("it claims a frame of %d bytes".formatted(bodyBytes));
    }
    if (!isCommand) {
      if (!ready) {
        throw new IOException("it sends before it is ready");
      }
      messageBytes += bodyBytes;
      if (skim == null && held + bodyBytes + FRAME_BYTES > sink.limit(this)) {
        skim = sink.tooLarge(this, frames, messageBytes);
      }
      if (messageBytes > MAX_SKIMMED_BYTES) {
        throw new IOException("its message has more than %d bytes".formatted(MAX_SKIMMED_BYTES));
      }
      if (skim != null) {
        skim.frame();
        return;
      }
      held += FRAME_BYTES;
    }
    body = new byte[(int) Math.min(bodyBytes, FIRST_BODY_BYTES)];
  }

  private void awaitHead() {
    head.clear().limit(2);
    bodyBytes = -1;
    body = null;
  }

  private void take(ByteBuffer bytes) {
    int count = (int) Math.min(bytes.remaining(), bodyBytes - arrived);
    if (body == null) {
      var part = new byte[count];
      bytes.get(part);
      open(part, 0, count);
      if (skim != null) {
        skim.bytes(ByteBuffer.wrap(part));
      }
    } else {
      if (body.length < arrived + count) {
        long room = Math.max(arrived + count, 2 * arrived);
        body = Arrays.copyOf(body, (int) Math.min(bodyBytes, room));
      }
      bytes.get(body, (int) arrived, count);
      open(body, (int) arrived, count);
    }
    arrived += count;
  }

  private void open(byte[] part, int from, int count) {
    if (ready) {
      mechanism.open(part, from, count);
    }
  }

  private void frameIsThere() throws IOException {
    if (ready) {
      mechanism.endFrame();
    }
    var frame = body;
    boolean last = (flags & MORE) == 0;
    long size = messageBytes;
    awaitHead();
    if ((flags & COMMAND) != 0) {
      obey(ByteBuffer.wrap(frame == null ? new byte[0] : frame));
      return;
    }
    if (frame != null) {
      frames.add(frame);
      held += frame.length;
    }
    if (last) {
      var whole = frames;
      var skimmed = skim;
      frames = new ArrayList<>();
      held = 0;
      messageBytes = 0;
      skim = null;
      if (skimmed != null) {
        sink.skimmed(this, skimmed, size);
      } else if (channel == Channel.IOPUB) {
        subscribe(whole.getFirst());
      } else {
        sink.message(this, whole);
      }
    }
  }

  /// Takes a subscription in the form of ZMTP 3.0, a message.
  private void subscribe(byte[] message) throws IOException {
    if (message.length > 0) {
      subscribe(Arrays.copyOfRange(message, 1, message.length), message[0] == 1);
    }
  }

  private void subscribe(byte[] topic, boolean subscribes) throws IOException {
    topics.removeIf(each -> Arrays.equals(each, topic));
    if (subscribes) {
      topics.add(topic);
    }
    if (topics.size() > MAX_TOPICS || topic.length > MAX_COMMAND_BYTES) {
      throw new IOException("it subscribes to too much");
    }
    if (subscribes) {
      sink.subscribed(this, topic);
    }
  }

  private void obey(ByteBuffer command) throws IOException {
    int length = command.hasRemaining() ? command.get() & 0xFF : 0;
    if (length > command.remaining()) {
      throw new IOException("it sends a command that is cut off");
    }
    var name = new byte[length];
    command.get(name);
    if (!ready) {
      shakeHands(text(name), command);
      return;
    }
    switch (text(name)) {
      case "READY" -> throw new IOException("it is ready twice");
      case "PING" -> {
        // After the time to live, two bytes, comes what the answer repeats.
        command.position(Math.min(command.limit(), command.position() + 2));
        answer(command("PONG", command));
      }
      case "SUBSCRIBE" -> subscribe(rest(command), true);
      case "CANCEL" -> subscribe(rest(command), false);
      case "ERROR" -> throw refused(command);
      default -> {} // a newer client's
    }
  }

  private void shakeHands(String name, ByteBuffer command) throws IOException {
    if (name.equals("ERROR")) {
      throw refused(command);
    }
    var step = mechanism.take(name, command);
    step.answer().ifPresent(this::sendUnsealed);
    if (step.properties().isPresent()) {
      takeProperties(step.properties().get());
      ready = true;
      sink.ready(this);
    }
  }

  private static IOException refused(ByteBuffer command) {
    return new IOException("it refused: " + text(rest(command)));
  }

  private void takeProperties(ByteBuffer properties) throws IOException {
    while (properties.hasRemaining()) {
      var name = text(part(properties, properties.get() & 0xFF));
      var value = part(properties, properties.remaining() < 4 ? -1 : properties.getInt());
      if (name.equalsIgnoreCase("Identity") && value.length > 0) {
        identity = value;
      }
    }
  }

  private static byte[] part(ByteBuffer from, int length) throws IOException {
    if (length < 0 || length > from.remaining()) {
      throw new IOException("its properties are cut off");
    }
    var part = new byte[length];
    from.get(part);
    return part;
  }

  private static byte[] rest(ByteBuffer command) {
    var rest = new byte[command.remaining()];
    command.get(rest);
    return rest;
  }

  static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }

  private static String text(byte[] bytes) {
    return new String(bytes, StandardCharsets.US_ASCII);
  }
}
