package braid.internal.store;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.util.Arrays;

/// Proof that one end of a connection knows the session's token, which is never sent. Each end
/// draws a nonce, and its proof is HMAC-SHA-256 of its side, both nonces and data that both ends
/// must see alike. A recorded proof is worth nothing on another connection, whose nonces differ,
/// and an end cannot send back the proof of the other, whose side differs.
///
/// The HMAC is written out because `javax.crypto` loads for longer than a rank may take to connect.
public final class TokenProof {
  /// Ends of a connection.
  public enum Side {
    CONNECTING,
    ACCEPTING
  }

  public static final int NONCE_BYTES = 32;

  /// Size of a proof.
  public static final int BYTES = 32;

  private static final int BLOCK_BYTES = 64;
  private static final byte INNER = 0x36;
  private static final byte OUTER = 0x5c;
  private static final SecureRandom RANDOM = new SecureRandom();

  private TokenProof() {}

  public static byte[] nonce() {
    var nonce = new byte[NONCE_BYTES];
    RANDOM.nextBytes(nonce);
    return nonce;
  }

  /// @param bound data that both ends must see alike, such as the certificate's hash
  public static byte[] proof(
      Side side, String token, byte[] connectingNonce, byte[] acceptingNonce, byte[] bound) {
    return hmac(
        token.getBytes(StandardCharsets.UTF_8),
        side.name().getBytes(StandardCharsets.US_ASCII),
        connectingNonce,
        acceptingNonce,
        bound);
  }

  /// Compares in constant time, so that the time does not reveal the proof.
  public static boolean isSame(byte[] expected, byte[] received) {
    return MessageDigest.isEqual(expected, received);
  }

  static byte[] hmac(byte[] key, byte[]... parts) {
    var digest = sha256();
    var block = Arrays.copyOf(key.length > BLOCK_BYTES ? digest.digest(key) : key, BLOCK_BYTES);
    digest.update(mixed(block, INNER));
    for (var part : parts) {
      digest.update(part);
    }
    var inner = digest.digest();
    digest.update(mixed(block, OUTER));
    return digest.digest(inner);
  }

  private static byte[] mixed(byte[] block, byte pad) {
    var mixed = block.clone();
    for (int i = 0; i < mixed.length; i++) {
      mixed[i] ^= pad;
    }
    return mixed;
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java has SHA-256", e);
    }
  }
}
