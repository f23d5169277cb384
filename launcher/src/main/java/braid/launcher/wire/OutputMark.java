package braid.launcher.wire;

import java.nio.charset.StandardCharsets;

/// A mark in a rank's stdout and stderr. Output leaves a rank through its descriptors, Java's and
/// native code's alike, so only a mark in the same pipe can say that all a cell printed has gone
/// by. It is shorter than PIPE_BUF, so no other writer tears it; the token keeps what a cell prints
/// from looking like one.
public record OutputMark(String token, long number) {
  /// ASCII record separator: rare in text, and never part of a UTF-8 sequence.
  public static final byte EDGE = 0x1e;

  private static final String INTRODUCTION = "braid ";

  public byte[] bytes() {
    return ((char) EDGE + INTRODUCTION + token + " " + number + (char) EDGE)
        .getBytes(StandardCharsets.US_ASCII);
  }

  /// What every mark of a session begins with.
  public static byte[] prefix(String token) {
    return ((char) EDGE + INTRODUCTION + token + " ").getBytes(StandardCharsets.US_ASCII);
  }
}
