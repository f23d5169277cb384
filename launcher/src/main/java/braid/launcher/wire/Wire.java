package braid.launcher.wire;

import braid.model.BraidException;
import braid.model.MimeBundle;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Locale;

/// Encoding of the parts of messages. Lengths are checked before memory is allocated.
public final class Wire {
  /// Largest part of a message.
  private static final int MAX_BYTES = 1 << 28;

  /// Most characters of all formats of a display together. In UTF-8 they always fit into a part.
  private static final int MAX_SHOWN_CHARS = 1 << 26;

  private Wire() {}

  public static void writeText(DataOutput out, String text) throws IOException {
    writeBytes(out, text.getBytes(StandardCharsets.UTF_8));
  }

  public static String readText(DataInput in) throws IOException {
    return new String(readBytes(in), StandardCharsets.UTF_8);
  }

  static void writeBytes(DataOutput out, byte[] bytes) throws IOException {
    if (bytes.length > MAX_BYTES) {
      throw new IOException(
          "a message part may have " + MAX_BYTES + " bytes but has " + bytes.length);
    }
    out.writeInt(bytes.length);
    out.write(bytes);
  }

  static byte[] readBytes(DataInput in) throws IOException {
    int length = in.readInt();
    if (length < 0 || length > MAX_BYTES) {
      throw new IOException("a message part may have " + MAX_BYTES + " bytes but claims " + length);
    }
    var bytes = new byte[length];
    in.readFully(bytes);
    return bytes;
  }

  static void writeBundle(DataOutput out, MimeBundle bundle) throws IOException {
    long chars = bundle.data().values().stream().mapToLong(String::length).sum();
    if (chars > MAX_SHOWN_CHARS) {
      throw new BraidException(
          String.format(
              Locale.ROOT,
              "what a cell returns or shows must have at most %,d characters but has %,d; show a"
                  + " part of it, or write it to a file",
              MAX_SHOWN_CHARS,
              chars));
    }
    out.writeInt(bundle.data().size());
    for (var entry : bundle.data().entrySet()) {
      writeText(out, entry.getKey());
      writeText(out, entry.getValue());
    }
  }

  static MimeBundle readBundle(DataInput in) throws IOException {
    int count = in.readInt();
    var data = new LinkedHashMap<String, String>();
    for (int i = 0; i < count; i++) {
      data.put(readText(in), readText(in));
    }
    return new MimeBundle(data);
  }
}
