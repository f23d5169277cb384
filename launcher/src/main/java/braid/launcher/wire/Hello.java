package braid.launcher.wire;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;

/// First message of a rank on each of its two connections, after the proof of the token. It
/// contains the rank, because ranks connect in any order.
public record Hello(int rank, long pid, boolean control) {
  public void write(DataOutput out) throws IOException {
    out.writeInt(rank);
    out.writeLong(pid);
    out.writeBoolean(control);
  }

  public static Hello read(DataInput in) throws IOException {
    return new Hello(in.readInt(), in.readLong(), in.readBoolean());
  }
}
