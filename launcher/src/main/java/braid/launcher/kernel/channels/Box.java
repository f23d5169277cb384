package braid.launcher.kernel.channels;

import java.io.IOException;
import java.security.MessageDigest;
import java.util.Arrays;
import org.bouncycastle.crypto.engines.Salsa20Engine;
import org.bouncycastle.crypto.engines.XSalsa20Engine;
import org.bouncycastle.crypto.macs.Poly1305;
import org.bouncycastle.crypto.params.KeyParameter;
import org.bouncycastle.crypto.params.ParametersWithIV;
import org.bouncycastle.math.ec.rfc7748.X25519;
import org.bouncycastle.util.Pack;

/// NaCl's box between two key pairs: X25519, XSalsa20 and Poly1305. A box is the authenticator,
/// then the ciphertext.
///
/// Long boxes are processed in place and in parts: [#start], [#encrypt] or [#decrypt] of each part,
/// [#authenticator].
final class Box {
  static final int KEY_BYTES = X25519.POINT_SIZE;
  static final int AUTHENTICATOR_BYTES = 16;

  private static final String CONSTANT = "expand 32-byte k";
  private static final int ROUNDS = 20;

  private final byte[] key;
  private final XSalsa20Engine cipher = new XSalsa20Engine();
  private final Poly1305 mac = new Poly1305();

  Box(byte[] key) {
    this.key = key;
  }

  /// Returns the box between one's own secret key and somebody's public key.
  ///
  /// @throws IOException if the public key is one of the few that agree with every secret key
  static Box between(byte[] secretKey, byte[] publicKey) throws IOException {
    var shared = new byte[KEY_BYTES];
    if (!X25519.calculateAgreement(secretKey, 0, publicKey, 0, shared, 0)) {
      throw new IOException("its public key is none");
    }
    return new Box(hash(shared));
  }

  /// Returns another box of the same keys, for the other direction.
  Box copy() {
    return new Box(key);
  }

  /// Returns HSalsa20 of a shared secret and zeros. `salsaCore` adds its input at the end, which is
  /// zero except for the constant.
  private static byte[] hash(byte[] shared) {
    var state = new int[16];
    for (int i = 0; i < 4; i++) {
      state[5 * i] = Pack.littleEndianToInt(CONSTANT.getBytes(MessageCodec.CHARSET), 4 * i);
      state[1 + i] = Pack.littleEndianToInt(shared, 4 * i);
      state[11 + i] = Pack.littleEndianToInt(shared, 16 + 4 * i);
    }
    var mixed = new int[16];
    Salsa20Engine.salsaCore(ROUNDS, state, mixed);
    var key = new byte[KEY_BYTES];
    for (int i = 0; i < 4; i++) {
      Pack.intToLittleEndian(mixed[5 * i] - state[5 * i], key, 4 * i);
      Pack.intToLittleEndian(mixed[6 + i], key, 16 + 4 * i);
    }
    return key;
  }

  void start(byte[] nonce) {
    cipher.init(true, new ParametersWithIV(new KeyParameter(key), nonce));
    var first = new byte[KEY_BYTES];
    cipher.processBytes(first, 0, first.length, first, 0);
    mac.init(new KeyParameter(first));
  }

  void encrypt(byte[] bytes, int from, int count) {
    cipher.processBytes(bytes, from, count, bytes, from);
    mac.update(bytes, from, count);
  }

  /// Decrypts a part, whose bytes prove nothing before the authenticator is compared.
  void decrypt(byte[] bytes, int from, int count) {
    mac.update(bytes, from, count);
    cipher.processBytes(bytes, from, count, bytes, from);
  }

  byte[] authenticator() {
    var authenticator = new byte[AUTHENTICATOR_BYTES];
    mac.doFinal(authenticator, 0);
    return authenticator;
  }

  /// Returns the box of these bytes.
  byte[] seal(byte[] nonce, byte[] plain) {
    var box = new byte[AUTHENTICATOR_BYTES + plain.length];
    System.arraycopy(plain, 0, box, AUTHENTICATOR_BYTES, plain.length);
    start(nonce);
    encrypt(box, AUTHENTICATOR_BYTES, plain.length);
    System.arraycopy(authenticator(), 0, box, 0, AUTHENTICATOR_BYTES);
    return box;
  }

  /// Returns the bytes in a box.
  ///
  /// @throws IOException if other keys made it, or it was changed
  byte[] open(byte[] nonce, byte[] box) throws IOException {
    if (box.length < AUTHENTICATOR_BYTES) {
      throw new IOException("its box is cut off");
    }
    var plain = Arrays.copyOfRange(box, AUTHENTICATOR_BYTES, box.length);
    start(nonce);
    decrypt(plain, 0, plain.length);
    check(Arrays.copyOf(box, AUTHENTICATOR_BYTES));
    return plain;
  }

  /// Compares the authenticator of the decrypted parts.
  void check(byte[] received) throws IOException {
    if (!MessageDigest.isEqual(authenticator(), received)) {
      throw new IOException("its box does not open with this kernel's key");
    }
  }
}
