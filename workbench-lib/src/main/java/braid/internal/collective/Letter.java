package braid.internal.collective;

import java.nio.charset.StandardCharsets;

/// What a rank says of a tensor that it sends or receives into. The `identity` is the same on all
/// ranks, so the receiver finds its own reach of it.
public record Letter(String identity, String dtype, String shape, String name) {
  private static final String SEPARATOR = "\0";
  private static final int FIELDS = 4;

  /// A name may be longer than there is room for; it comes last, so nothing else is cut.
  static Letter read(byte[] bytes) {
    var fields = new String(bytes, StandardCharsets.UTF_8).split(SEPARATOR, FIELDS);
    return new Letter(fields[0], fields[1], fields[2], fields[3]);
  }

  byte[] bytes() {
    return String.join(SEPARATOR, identity, dtype, shape, name).getBytes(StandardCharsets.UTF_8);
  }

  /// Whether what is sent can be received into that.
  boolean fits(Letter into) {
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
