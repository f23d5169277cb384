package braid.internal.memory;

import braid.natives.Fnv;
import java.nio.charset.StandardCharsets;

/// Something that all members of a group do together, as one of them says it. The `name` is what is
/// called ("allocate `x`"), the `value` what must be the same on all of them ("4x8 fp32 native"),
/// the `memory` what a rank would take for it, which it knows from its own earlier calls.
///
/// Make one and keep it where a call is made often: its bytes are ready then.
public final class Call {
  private static final String SEPARATOR = "\0";
  private static final int FIELDS = 3;

  private final String name;
  private final String value;
  private final String memory;
  private final byte[] bytes;
  private final long digest;

  private Call(String name, String value, String memory) {
    this.name = name;
    this.value = value;
    this.memory = memory;
    var text = String.join(SEPARATOR, name, value, memory);
    this.bytes = text.getBytes(StandardCharsets.UTF_8);
    this.digest = Fnv.hash(text);
  }

  /// A call with nothing that could differ.
  public static Call of(String name) {
    return new Call(name, "", "");
  }

  public static Call of(String name, String value) {
    return new Call(name, value, "");
  }

  /// The same call, with what its memory is.
  Call from(String what) {
    return new Call(name, value, what);
  }

  /// What [#bytes] were written of; the end may be missing.
  static Call read(byte[] bytes) {
    var fields = new String(bytes, StandardCharsets.UTF_8).split(SEPARATOR, FIELDS);
    return new Call(
        fields[0], fields.length > 1 ? fields[1] : "", fields.length > 2 ? fields[2] : "");
  }

  public String name() {
    return name;
  }

  public String value() {
    return value;
  }

  String memory() {
    return memory;
  }

  byte[] bytes() {
    return bytes;
  }

  /// Digest of the whole text: equal for equal texts, also if a board has no room for all of it.
  public long digest() {
    return digest;
  }

  @Override
  public String toString() {
    return value.isEmpty() ? name : name + " " + value;
  }
}
