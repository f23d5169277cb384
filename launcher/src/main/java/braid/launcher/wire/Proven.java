package braid.launcher.wire;

import braid.internal.store.TokenProof;
import braid.internal.store.TokenProof.Side;
import java.io.DataInput;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.ProtocolException;

/// First bytes of a connection between Braid's processes, in which both ends prove the token. The
/// connecting end sends a nonce; the accepting end a nonce and its proof; the connecting end its
/// proof. A stranger costs the accepting end 36 bytes and two hashes.
public final class Proven {
  private static final int MAGIC = 0x62726432;

  private Proven() {}

  /// @param bound data that both ends must see alike
  /// @throws IOException if the other end does not know the token
  public static void connect(DataInput in, DataOutputStream out, String token, byte[] bound)
      throws IOException {
    var nonce = TokenProof.nonce();
    out.writeInt(MAGIC);
    out.write(nonce);
    out.flush();
    var acceptingNonce = read(in, TokenProof.NONCE_BYTES);
    var proof = read(in, TokenProof.BYTES);
    if (!TokenProof.isSame(
        TokenProof.proof(Side.ACCEPTING, token, nonce, acceptingNonce, bound), proof)) {
      throw new ProtocolException("it does not know the token of this session");
    }
    out.write(TokenProof.proof(Side.CONNECTING, token, nonce, acceptingNonce, bound));
    out.flush();
  }

  /// @param bound data that both ends must see alike
  /// @throws IOException if the other end does not know the token
  public static void accept(DataInput in, DataOutputStream out, String token, byte[] bound)
      throws IOException {
    int magic = in.readInt();
    if (magic != MAGIC) {
      throw new IOException("not a Braid rank: its first bytes are " + Integer.toHexString(magic));
    }
    var connectingNonce = read(in, TokenProof.NONCE_BYTES);
    var nonce = TokenProof.nonce();
    out.write(nonce);
    out.write(TokenProof.proof(Side.ACCEPTING, token, connectingNonce, nonce, bound));
    out.flush();
    var proof = read(in, TokenProof.BYTES);
    if (!TokenProof.isSame(
        TokenProof.proof(Side.CONNECTING, token, connectingNonce, nonce, bound), proof)) {
      throw new IOException("its token does not match this session's");
    }
  }

  private static byte[] read(DataInput in, int count) throws IOException {
    var bytes = new byte[count];
    in.readFully(bytes);
    return bytes;
  }
}
