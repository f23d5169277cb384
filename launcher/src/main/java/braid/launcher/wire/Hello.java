package braid.launcher.wire;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;

/// First message of a rank on each of its two connections. It contains the rank, because ranks
/// connect in any order, and a token, which proves that this front started the process.
public record Hello(String token, int rank, long pid, boolean control) {
  private static final int MAGIC = 0x62726431;
  private static final int MAX_TOKEN_BYTES = 256;

  public void write(DataOutput out) throws IOException {
    out.writeInt(MAGIC);
    var bytes = token.getBytes(StandardCharsets.UTF_8);
    out.writeShort(bytes.length);
    out.write(bytes);
    out.writeInt(rank);
    out.writeLong(pid);
    out.writeBoolean(control);
  }

  /// Reads the hello of a process that is not authenticated yet, and so checks the length of the
  /// token before it allocates memory for it.
  public static Hello read(DataInput in) throws IOException {
    int magic = in.readInt();
    if (magic != MAGIC) {
      throw new IOException("not a Braid rank: its first bytes are " + Integer.toHexString(magic));
    }
    int length = in.readUnsignedShort();
    if (length > MAX_TOKEN_BYTES) {
      throw new IOException(
          "a token must have at most " + MAX_TOKEN_BYTES + " bytes but has " + length);
    }
    var bytes = new byte[length];
    in.readFully(bytes);
    return new Hello(
        new String(bytes, StandardCharsets.UTF_8), in.readInt(), in.readLong(), in.readBoolean());
  }

  /// Compares in constant time, so that the time does not reveal the token.
  public boolean hasToken(String expected) {
    return MessageDigest.isEqual(
        token.getBytes(StandardCharsets.UTF_8), expected.getBytes(StandardCharsets.UTF_8));
  }
}
