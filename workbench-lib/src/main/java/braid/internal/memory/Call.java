package braid.internal.memory;

import braid.natives.Fnv;
import java.nio.charset.StandardCharsets;

/// Describes a call that all members of a group make together. The `name` is the operation
/// ("allocate `x`"), the `value` its arguments that must be equal on all ranks ("4x8 fp32 native"),
/// the `memory` the buffer that this rank would use, which follows from its earlier calls.
///
/// Frequent calls keep and reuse one instance, because it caches its bytes.
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

  /// A call without arguments that could differ.
  public static Call of(String name) {
    return new Call(name, "", "");
  }

  public static Call of(String name, String value) {
    return new Call(name, value, "");
  }

  /// Returns this call with its memory.
  Call from(String memory) {
    return new Call(name, value, memory);
  }

  /// Reads a call from [#bytes], which may be truncated.
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

  /// Returns a digest of the whole text, including the part that a board truncates.
  public long digest() {
    return digest;
  }

  @Override
  public String toString() {
    return value.isEmpty() ? name : name + " " + value;
  }
}
