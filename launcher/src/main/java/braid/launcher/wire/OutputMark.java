package braid.launcher.wire;

import java.nio.charset.StandardCharsets;

/// A mark in a rank's stdout and stderr. Java and native code both write to the descriptors, so
/// only a mark in the same pipe shows the end of a cell's output. It is shorter than PIPE_BUF, so
/// no other writer can split it; the token distinguishes it from a cell's output.
public record OutputMark(String token, long number) {
  /// ASCII record separator: rare in text, and never part of a UTF-8 sequence.
  public static final byte EDGE = 0x1e;

  private static final String INTRODUCTION = "braid ";

  public byte[] bytes() {
    return ((char) EDGE + INTRODUCTION + token + " " + number + (char) EDGE)
        .getBytes(StandardCharsets.US_ASCII);
  }

  /// Beginning of every mark of a session.
  public static byte[] prefix(String token) {
    return ((char) EDGE + INTRODUCTION + token + " ").getBytes(StandardCharsets.US_ASCII);
  }
}
