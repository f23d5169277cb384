package braid.internal.collective;

import braid.model.BraidException;
import java.nio.charset.StandardCharsets;

/// What a rank says of a tensor that it sends or receives into. The `identity` is the same on all
/// ranks, so the receiver finds its own reach of it.
public record MessageHeader(String identity, String dtype, String shape, String name) {
  private static final String SEPARATOR = "\0";
  private static final int FIELDS = 4;

  /// What there is room for in a mailbox.
  static final int MAX_BYTES = 448 - Integer.BYTES;

  public MessageHeader {
    int bytes = bytes(identity, dtype, shape, name).length;
    if (bytes > MAX_BYTES) {
      throw new BraidException(
          "what a message is must be said in %d bytes but the name, type and sizes of `%s` take %d; send it with fewer dimensions"
              .formatted(MAX_BYTES, name, bytes));
    }
  }

  static MessageHeader read(byte[] bytes) {
    var fields = new String(bytes, StandardCharsets.UTF_8).split(SEPARATOR, FIELDS);
    return new MessageHeader(fields[0], fields[1], fields[2], fields[3]);
  }

  byte[] bytes() {
    return bytes(identity, dtype, shape, name);
  }

  private static byte[] bytes(String... fields) {
    return String.join(SEPARATOR, fields).getBytes(StandardCharsets.UTF_8);
  }

  /// Whether what is sent can be received into that.
  boolean fits(MessageHeader into) {
    return dtype.equals(into.dtype) && shape.equals(into.shape);
  }

  String type() {
    return shape + " " + dtype;
  }

  @Override
  public String toString() {
    return "`%s` %s".formatted(name, type());
  }
}
