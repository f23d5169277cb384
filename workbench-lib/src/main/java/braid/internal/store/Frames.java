package braid.internal.store;

import braid.internal.rank.BlockedWait;
import braid.internal.store.TokenProof.Side;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Messages over a socket: a length, then that number of bytes. Frames are written without delay,
/// since a peer waits for each of them.
final class Frames {
  /// Room for the largest value of every member, for more members than a machine has GPUs.
  static final int MAX_FRAME_BYTES = 64 * Meeting.MAX_VALUE_BYTES;

  /// Limit for a peer that has not yet proved the token.
  private static final int MAX_HELLO_BYTES = 4096;

  /// First words of a rank's and of the store's first frame. They differ, so that an echo is not
  /// taken for an answer. (A connection to a port that was just closed can be connected to itself.)
  private static final int HELLO = 0x42524831;

  private static final int WELCOME = 0x42525731;

  /// The proofs of a store's connection are not valid elsewhere.
  private static final byte[] BOUND = "store".getBytes(StandardCharsets.US_ASCII);

  private final DataInputStream input;
  private final OutputStream out;

  Frames(Socket socket) throws IOException {
    socket.setTcpNoDelay(true);
    input = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
    out = socket.getOutputStream();
  }

  @FunctionalInterface
  interface Writer {
    void write(DataOutputStream out) throws IOException;
  }

  void send(Writer writer) throws IOException {
    var buffer = new ByteArrayOutputStream();
    var data = new DataOutputStream(buffer);
    data.writeInt(0);
    writer.write(data);
    var frame = buffer.toByteArray();
    ByteBuffer.wrap(frame).putInt(0, frame.length - Integer.BYTES);
    synchronized (out) {
      out.write(frame);
      out.flush();
    }
  }

  /// Returns the next frame, or null if the peer closed the connection between two frames.
  @Nullable ByteBuffer receive(int maxBytes) throws IOException {
    int length;
    try {
      length = input.readInt();
    } catch (EOFException e) {
      return null;
    }
    if (length < 1 || length > maxBytes) {
      throw new IOException(
          "a frame must be 1.." + maxBytes + " bytes but was " + length + "; not a braid peer?");
    }
    return ByteBuffer.wrap(input.readNBytes(length));
  }

  static void put(DataOutputStream out, byte[] bytes) throws IOException {
    out.writeInt(bytes.length);
    out.write(bytes);
  }

  static void put(DataOutputStream out, String text) throws IOException {
    put(out, text.getBytes(StandardCharsets.UTF_8));
  }

  static byte[] bytes(ByteBuffer buffer) throws IOException {
    int length = buffer.getInt();
    if (length < 0 || length > buffer.remaining()) {
      throw new IOException(
          "a value of " + length + " bytes in a frame that has " + buffer.remaining());
    }
    var bytes = new byte[length];
    buffer.get(bytes);
    return bytes;
  }

  static String text(ByteBuffer buffer) throws IOException {
    return new String(bytes(buffer), StandardCharsets.UTF_8);
  }

  /// Greets the store as a rank; both prove the token. Returns the store's refusal; empty if it
  /// accepts the rank.
  String greet(int rank, String token) throws IOException {
    var nonce = TokenProof.nonce();
    send(
        out -> {
          out.writeInt(HELLO);
          out.writeInt(rank);
          put(out, nonce);
        });
    var challenge = first(WELCOME, "a store of braid");
    var storeNonce = bytes(challenge);
    var storeProof = bytes(challenge);
    send(out -> put(out, TokenProof.proof(Side.CONNECTING, token, nonce, storeNonce, BOUND)));
    var refusal = text(first(WELCOME, "a store of braid"));
    // After the refusal, which says more.
    if (refusal.isEmpty()
        && !TokenProof.isSame(
            TokenProof.proof(Side.ACCEPTING, token, nonce, storeNonce, BOUND), storeProof)) {
      throw new IOException("it does not know the token of this session");
    }
    return refusal;
  }

  /// A rank that connects.
  ///
  /// @param proven true if it knows the token
  record Greeting(int rank, boolean proven) {}

  /// Receives a rank's greeting and its proof of the token, after the store's own.
  Greeting receiveGreeting(String token) throws IOException {
    var hello = first(HELLO, "a rank of braid");
    int rank = hello.getInt();
    var rankNonce = bytes(hello);
    var nonce = TokenProof.nonce();
    send(
        out -> {
          out.writeInt(WELCOME);
          put(out, nonce);
          put(out, TokenProof.proof(Side.ACCEPTING, token, rankNonce, nonce, BOUND));
        });
    var frame = receive(MAX_HELLO_BYTES);
    return new Greeting(
        rank,
        frame != null
            && TokenProof.isSame(
                TokenProof.proof(Side.CONNECTING, token, rankNonce, nonce, BOUND), bytes(frame)));
  }

  /// Ends the greeting; an empty refusal accepts the rank.
  void sendWelcome(String refusal) throws IOException {
    send(
        out -> {
          out.writeInt(WELCOME);
          put(out, refusal);
        });
  }

  private ByteBuffer first(int word, String peer) throws IOException {
    var frame = receive(MAX_HELLO_BYTES);
    if (frame == null) {
      throw new IOException("it closed the connection before its greeting");
    }
    if (frame.remaining() < Integer.BYTES || frame.getInt() != word) {
      throw new IOException("it is not " + peer);
    }
    return frame;
  }

  static void put(DataOutputStream out, Meeting meeting) throws IOException {
    out.writeInt(meeting.epoch());
    put(out, meeting.key());
    put(out, meeting.label());
    put(out, meeting.members());
  }

  static void put(DataOutputStream out, Collection<Integer> ranks) throws IOException {
    out.writeInt(ranks.size());
    for (int rank : ranks) {
      out.writeInt(rank);
    }
  }

  static List<Integer> ranks(ByteBuffer buffer) throws IOException {
    var ranks = new ArrayList<Integer>();
    for (int left = count(buffer, Integer.BYTES); left > 0; left--) {
      ranks.add(buffer.getInt());
    }
    return ranks;
  }

  static Meeting meeting(ByteBuffer buffer) throws IOException {
    int epoch = buffer.getInt();
    var key = text(buffer);
    var label = text(buffer);
    return new Meeting(epoch, key, label, ranks(buffer));
  }

  static void put(DataOutputStream out, BlockedWait wait) throws IOException {
    out.writeInt(wait.epoch());
    out.writeLong(wait.thread());
    out.writeLong(wait.number());
    out.writeLong(wait.seen());
    out.writeBoolean(wait.alone());
    out.writeBoolean(wait.message());
    put(out, wait.purpose());
    put(out, wait.scope());
    put(out, wait.meeting());
    put(out, wait.missing());
  }

  static BlockedWait blockedWait(ByteBuffer buffer) throws IOException {
    return new BlockedWait(
        buffer.getInt(),
        buffer.getLong(),
        buffer.getLong(),
        buffer.getLong(),
        buffer.get() != 0,
        buffer.get() != 0,
        text(buffer),
        text(buffer),
        text(buffer),
        ranks(buffer));
  }

  static void put(DataOutputStream out, Reply reply) throws IOException {
    switch (reply) {
      case Reply.Values(var values) -> {
        out.writeByte('v');
        out.writeInt(values.size());
        for (var value : values) {
          put(out, value);
        }
      }
      case Reply.Failed(var message) -> {
        out.writeByte('f');
        put(out, message);
      }
      case Reply.Different(var message) -> {
        out.writeByte('c');
        put(out, message);
      }
      case Reply.Departed(var missing) -> {
        out.writeByte('d');
        put(out, missing);
      }
      case Reply.Aborted(var reason) -> {
        out.writeByte('a');
        put(out, reason);
      }
      case Reply.Reported(var answer) -> {
        out.writeByte('w');
        out.writeLong(answer.time());
        out.writeBoolean(answer.suspected());
        put(out, answer.circle());
      }
    }
  }

  static Reply reply(ByteBuffer buffer) throws IOException {
    byte kind = buffer.get();
    return switch (kind) {
      case 'v' -> {
        List<byte[]> values = new ArrayList<>();
        for (int left = count(buffer, Integer.BYTES); left > 0; left--) {
          values.add(bytes(buffer));
        }
        yield new Reply.Values(values);
      }
      case 'f' -> new Reply.Failed(text(buffer));
      case 'c' -> new Reply.Different(text(buffer));
      case 'd' -> new Reply.Departed(ranks(buffer));
      case 'a' -> new Reply.Aborted(text(buffer));
      case 'w' ->
          new Reply.Reported(
              new BlockedWait.Answer(buffer.getLong(), buffer.get() != 0, text(buffer)));
      default -> throw new IOException("the store sent a reply of unknown kind " + kind);
    };
  }

  private static int count(ByteBuffer buffer, int bytesEach) throws IOException {
    int count = buffer.getInt();
    if (count < 0 || count > buffer.remaining() / bytesEach) {
      throw new IOException("a list of " + count + " in a frame that has " + buffer.remaining());
    }
    return count;
  }
}
