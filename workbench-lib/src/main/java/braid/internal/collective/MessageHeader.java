package braid.internal.collective;

import braid.model.BraidException;
import java.nio.charset.StandardCharsets;

/// Description of a tensor that a rank sends, or into which it receives.
///
/// @param identity the same on all ranks, so that the receiver finds its own mapping of the tensor
public record MessageHeader(String identity, String dtype, String shape, String name) {
  private static final String SEPARATOR = "\0";
  private static final int FIELDS = 4;

  /// Size of the header in a mailbox entry, without its length field.
  static final int MAX_BYTES = 448 - Integer.BYTES;

  public MessageHeader {
    int bytes = bytes(identity, dtype, shape, name).length;
    if (bytes > MAX_BYTES) {
      throw new BraidException(
          "a message header must fit in %d bytes but the name, type and shape of `%s` take %d; send it with a shorter name or fewer dimensions"
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

  /// Returns whether this tensor can be received into the other one.
  boolean fits(MessageHeader target) {
    return dtype.equals(target.dtype) && shape.equals(target.shape);
  }

  String type() {
    return shape + " " + dtype;
  }

  @Override
  public String toString() {
    return "`%s` %s".formatted(name, type());
  }
}
