package braid.launcher.kernel.channels;

import braid.model.BraidException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.bouncycastle.math.ec.rfc7748.X25519;

/// The key pair of a kernel's sockets for CURVE, as a connection file has it: in Z85, five
/// characters for four bytes.
public final class CurveKeys {
  private static final String DIGITS =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
  private static final int GROUP = 5;
  private static final int TEXT_LENGTH = Box.KEY_BYTES / Integer.BYTES * GROUP;

  final byte[] publicKey;
  final byte[] secretKey;

  private CurveKeys(byte[] publicKey, byte[] secretKey) {
    this.publicKey = publicKey;
    this.secretKey = secretKey;
  }

  /// @throws BraidException if a key is malformed, or they are no pair
  public static CurveKeys of(String publicKey, String secretKey) {
    var keys =
        new CurveKeys(decode("curve_publickey", publicKey), decode("curve_secretkey", secretKey));
    var expected = new byte[Box.KEY_BYTES];
    X25519.scalarMultBase(keys.secretKey, 0, expected, 0);
    if (!Arrays.equals(expected, keys.publicKey)) {
      throw new BraidException(
          "curve_publickey must be the public key of curve_secretkey but was "
              + publicKey
              + "; start the kernel from Jupyter");
    }
    return keys;
  }

  /// The error does not repeat the key, which may be the secret one.
  private static byte[] decode(String name, String text) {
    var bytes = ByteBuffer.allocate(Box.KEY_BYTES);
    boolean valid = text.length() == TEXT_LENGTH;
    for (int start = 0; valid && start < TEXT_LENGTH; start += GROUP) {
      long value = 0;
      for (int i = start; i < start + GROUP; i++) {
        int digit = DIGITS.indexOf(text.charAt(i));
        valid &= digit >= 0;
        value = value * DIGITS.length() + digit;
      }
      valid &= value >>> Integer.SIZE == 0;
      bytes.putInt((int) value);
    }
    if (!valid) {
      throw new BraidException(
          "%s must be a key of %d characters in Z85 but was another text of %d; start the kernel from Jupyter"
              .formatted(name, TEXT_LENGTH, text.length()));
    }
    return bytes.array();
  }
}
