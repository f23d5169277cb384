package braid.launcher.kernel.channels;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.Optional;
import org.bouncycastle.math.ec.rfc7748.X25519;
import org.jspecify.annotations.Nullable;

/// The server of one connection in CURVE. `S` is the kernel's public key, `C` the client's; `S'`
/// and `C'` are made for the connection, so that a key that leaks later opens nothing of today:
///
/// ```
/// HELLO    ▶ C', Box[zeros](C'→S)                the client knows S
/// WELCOME  ◀ Box[S', cookie](S→C')               the kernel owns S
/// INITIATE ▶ cookie, Box[C, Box[C', S](C→S'), properties](C'→S')   the client owns C
/// READY    ◀ Box[properties](S'→C')
/// MESSAGE  ◀▶ Box[flags, body]                   every frame
/// ```
///
/// The client's nonces must increase, so nothing that is recorded can be repeated. The cookie is
/// random and kept here: a handshake continues only on its connection. Each command is checked for
/// its size before any key is used, and a wrong one ends the connection without an answer. Any
/// client key is accepted: who may do what is decided by [Admission], as without CURVE.
///
/// A frame is decrypted while it arrives and used when its authenticator has been compared. Until
/// then only its first byte, the flags, has an effect: the connection may end.
final class Curve implements Mechanism {
  private static final SecureRandom RANDOM = new SecureRandom();

  private static final byte[] VERSION = {1, 0};
  private static final int PADDING_BYTES = 72;
  private static final int SHORT_NONCE_BYTES = 8;
  private static final int LONG_NONCE_BYTES = 16;
  private static final int COOKIE_BYTES = 96;
  private static final int ZEROS = 64;
  private static final int HELLO_BYTES =
      VERSION.length
          + PADDING_BYTES
          + Box.KEY_BYTES
          + SHORT_NONCE_BYTES
          + ZEROS
          + Box.AUTHENTICATOR_BYTES;
  private static final int VOUCH_BYTES = 2 * Box.KEY_BYTES + Box.AUTHENTICATOR_BYTES;
  private static final int INITIATE_MIN_BYTES =
      COOKIE_BYTES
          + SHORT_NONCE_BYTES
          + Box.AUTHENTICATOR_BYTES
          + Box.KEY_BYTES
          + LONG_NONCE_BYTES
          + VOUCH_BYTES;

  private static final byte[] MESSAGE = Peer.bytes("\7MESSAGE");
  private static final int FLAGS_AT = MESSAGE.length + SHORT_NONCE_BYTES + Box.AUTHENTICATOR_BYTES;
  private static final int MESSAGE_HEAD_BYTES = FLAGS_AT + 1;
  private static final int SEALED_MORE = 1;
  private static final int SEALED_COMMAND = 2;

  private final CurveKeys keys;
  private final byte[] properties;
  private final byte[] secretKey = new byte[Box.KEY_BYTES];
  private final byte[] cookie = new byte[COOKIE_BYTES];
  private byte @Nullable [] clientKey;
  private @Nullable Box incoming;
  private @Nullable Box outgoing;
  private byte[] authenticator = new byte[0];
  private long clientNonce;
  private long nonce;

  /// @param properties of the kernel's socket
  Curve(CurveKeys keys, byte[] properties) {
    this.keys = keys;
    this.properties = properties;
  }

  @Override
  public String name() {
    return "CURVE";
  }

  @Override
  public Optional<ByteBuffer> opening() {
    return Optional.empty();
  }

  @Override
  public Step take(String command, ByteBuffer data) throws IOException {
    if (command.equals("HELLO") && clientKey == null && data.remaining() == HELLO_BYTES) {
      return new Step(Optional.of(welcome(data)), Optional.empty());
    }
    if (command.equals("INITIATE") && clientKey != null && data.remaining() >= INITIATE_MIN_BYTES) {
      return initiate(data, clientKey);
    }
    throw new IOException("its handshake in CURVE is out of order or cut off");
  }

  private ByteBuffer welcome(ByteBuffer hello) throws IOException {
    if (!Arrays.equals(part(hello, VERSION.length), VERSION)) {
      throw new IOException("it speaks another version of CURVE");
    }
    hello.position(hello.position() + PADDING_BYTES);
    var client = part(hello, Box.KEY_BYTES);
    clientNonce = hello.getLong();
    var box = Box.between(keys.secretKey, client);
    box.open(nonce("CurveZMQHELLO---", clientNonce), rest(hello));
    clientKey = client;
    X25519.generatePrivateKey(RANDOM, secretKey);
    var publicKey = new byte[Box.KEY_BYTES];
    X25519.generatePublicKey(secretKey, 0, publicKey, 0);
    RANDOM.nextBytes(cookie);
    var random = new byte[LONG_NONCE_BYTES];
    RANDOM.nextBytes(random);
    var sealed = box.seal(nonce("WELCOME-", random), concatenated(publicKey, cookie));
    return Peer.command("WELCOME", ByteBuffer.wrap(concatenated(random, sealed)));
  }

  private Step initiate(ByteBuffer initiate, byte[] client) throws IOException {
    if (!MessageDigest.isEqual(part(initiate, COOKIE_BYTES), cookie)) {
      throw new IOException("its cookie is another connection's");
    }
    increase(initiate.getLong());
    var box = Box.between(secretKey, client);
    var opened = ByteBuffer.wrap(box.open(nonce("CurveZMQINITIATE", clientNonce), rest(initiate)));
    var permanentKey = part(opened, Box.KEY_BYTES);
    var random = part(opened, LONG_NONCE_BYTES);
    var vouch =
        Box.between(secretKey, permanentKey)
            .open(nonce("VOUCH---", random), part(opened, VOUCH_BYTES));
    if (!MessageDigest.isEqual(vouch, concatenated(client, keys.publicKey))) {
      throw new IOException("its key does not vouch for this connection");
    }
    incoming = box;
    outgoing = box.copy();
    nonce = 1;
    var ready =
        ByteBuffer.allocate(SHORT_NONCE_BYTES + Box.AUTHENTICATOR_BYTES + properties.length);
    ready.putLong(nonce).put(box.seal(nonce("CurveZMQREADY---", nonce), properties));
    return new Step(Optional.of(Peer.command("READY", ready.flip())), Optional.of(opened.slice()));
  }

  private void increase(long next) throws IOException {
    if (Long.compareUnsigned(next, clientNonce) <= 0) {
      throw new IOException("its nonce does not increase");
    }
    clientNonce = next;
  }

  @Override
  public int headBytes() {
    return MESSAGE_HEAD_BYTES;
  }

  @Override
  public int openHead(int flags, ByteBuffer head) throws IOException {
    if (!Arrays.equals(part(head, MESSAGE.length), MESSAGE)) {
      throw new IOException("it sends a frame that is not sealed");
    }
    increase(head.getLong());
    authenticator = part(head, Box.AUTHENTICATOR_BYTES);
    ready(incoming).start(nonce("CurveZMQMESSAGEC", clientNonce));
    var sealed = part(head, 1);
    open(sealed, 0, 1);
    return ((sealed[0] & SEALED_MORE) != 0 ? Peer.MORE : 0)
        | ((sealed[0] & SEALED_COMMAND) != 0 ? Peer.COMMAND : 0);
  }

  @Override
  public void open(byte[] bytes, int from, int count) {
    ready(incoming).decrypt(bytes, from, count);
  }

  @Override
  public void endFrame() throws IOException {
    ready(incoming).check(authenticator);
  }

  @Override
  public ByteBuffer seal(ByteBuffer frames) {
    int count = 0;
    for (var left = frames.duplicate(); left.hasRemaining(); count++) {
      int flags = left.get();
      int size = Peer.size(flags, left);
      left.position(left.position() + size);
    }
    var sealed =
        ByteBuffer.allocate(frames.remaining() + count * (MESSAGE_HEAD_BYTES + Long.BYTES));
    for (var left = frames.duplicate(); left.hasRemaining(); ) {
      int flags = left.get();
      int size = Peer.size(flags, left);
      Peer.putHead(sealed, 0, MESSAGE_HEAD_BYTES + size);
      int start = sealed.position();
      sealed.put(MESSAGE).putLong(++nonce).position(start + FLAGS_AT);
      sealed.put(
          (byte)
              (((flags & Peer.MORE) != 0 ? SEALED_MORE : 0)
                  | ((flags & Peer.COMMAND) != 0 ? SEALED_COMMAND : 0)));
      sealed.put(left.slice(left.position(), size));
      left.position(left.position() + size);
      var box = ready(outgoing);
      box.start(nonce("CurveZMQMESSAGES", nonce));
      box.encrypt(sealed.array(), start + FLAGS_AT, 1 + size);
      sealed.put(start + FLAGS_AT - Box.AUTHENTICATOR_BYTES, box.authenticator());
    }
    return sealed.flip();
  }

  private static Box ready(@Nullable Box box) {
    if (box == null) {
      throw new IllegalStateException("the handshake is not complete");
    }
    return box;
  }

  private static byte[] nonce(String prefix, long number) {
    return nonce(prefix, ByteBuffer.allocate(SHORT_NONCE_BYTES).putLong(number).array());
  }

  private static byte[] nonce(String prefix, byte[] rest) {
    return concatenated(Peer.bytes(prefix), rest);
  }

  private static byte[] concatenated(byte[] first, byte[] second) {
    var both = Arrays.copyOf(first, first.length + second.length);
    System.arraycopy(second, 0, both, first.length, second.length);
    return both;
  }

  private static byte[] part(ByteBuffer from, int count) {
    var part = new byte[count];
    from.get(part);
    return part;
  }

  private static byte[] rest(ByteBuffer from) {
    return part(from, from.remaining());
  }
}
