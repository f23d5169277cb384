package braid.launcher.ranks;

import braid.launcher.ranks.RankEvent.Channel;
import braid.launcher.wire.OutputMark;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.function.Consumer;

/// Drains one of a rank's output pipes: text and marks, in order. A full pipe would block the rank,
/// so it drains permanently, also between cells.
final class OutputPump {
  private static final int CHUNK_BYTES = 1 << 16;
  private static final int MAX_NUMBER_DIGITS = 20;

  private final int rank;
  private final Channel channel;
  private final byte[] markPrefix;
  private final Consumer<RankEvent> events;
  private final CharsetDecoder decoder =
      StandardCharsets.UTF_8
          .newDecoder()
          .onMalformedInput(CodingErrorAction.REPLACE)
          .onUnmappableCharacter(CodingErrorAction.REPLACE);
  private final CharBuffer chars = CharBuffer.allocate(CHUNK_BYTES + 16);
  private ByteBuffer undecoded = ByteBuffer.allocate(0);
  private byte[] held = new byte[0];

  OutputPump(int rank, Channel channel, String token, Consumer<RankEvent> events) {
    this.rank = rank;
    this.channel = channel;
    this.events = events;
    markPrefix = OutputMark.prefix(token);
  }

  void drain(InputStream in) {
    var chunk = new byte[CHUNK_BYTES];
    try {
      for (int count = in.read(chunk); count >= 0; count = in.read(chunk)) {
        accept(chunk, count);
      }
    } catch (IOException e) {
      text(("[braid] the pipe broke: " + e.getMessage() + "\n").getBytes(StandardCharsets.UTF_8));
    }
    text(held);
    held = new byte[0];
  }

  /// Splits a chunk at marks. An incomplete mark is held back until more bytes arrive.
  void accept(byte[] chunk, int count) {
    var bytes = Arrays.copyOf(held, held.length + count);
    System.arraycopy(chunk, 0, bytes, held.length, count);
    int from = 0;
    int position = 0;
    while (position < bytes.length) {
      if (bytes[position] != OutputMark.EDGE) {
        position++;
        continue;
      }
      int end = markEnd(bytes, position);
      if (end == INCOMPLETE) {
        break;
      }
      if (end == NO_MARK) {
        position++;
        continue;
      }
      text(Arrays.copyOfRange(bytes, from, position));
      int digits = position + markPrefix.length;
      long number =
          Long.parseLong(new String(bytes, digits, end - 1 - digits, StandardCharsets.US_ASCII));
      events.accept(new RankEvent.OutputMarked(rank, channel, number));
      from = end;
      position = end;
    }
    text(Arrays.copyOfRange(bytes, from, position));
    held = Arrays.copyOfRange(bytes, position, bytes.length);
  }

  private static final int INCOMPLETE = -1;
  private static final int NO_MARK = -2;

  /// Returns the index after the mark that starts at `start`.
  private int markEnd(byte[] bytes, int start) {
    for (int i = 0; i < markPrefix.length; i++) {
      if (start + i == bytes.length) {
        return INCOMPLETE;
      }
      if (bytes[start + i] != markPrefix[i]) {
        return NO_MARK;
      }
    }
    int digits = start + markPrefix.length;
    for (int i = digits; i < digits + MAX_NUMBER_DIGITS; i++) {
      if (i == bytes.length) {
        return INCOMPLETE;
      }
      if (bytes[i] == OutputMark.EDGE && i > digits) {
        return i + 1;
      }
      if (bytes[i] < '0' || bytes[i] > '9') {
        return NO_MARK;
      }
    }
    return NO_MARK;
  }

  private void text(byte[] bytes) {
    if (bytes.length == 0) {
      return;
    }
    var input = ByteBuffer.allocate(undecoded.remaining() + bytes.length);
    input.put(undecoded).put(bytes).flip();
    var text = new StringBuilder();
    while (true) {
      chars.clear();
      var result = decoder.decode(input, chars, false);
      chars.flip();
      text.append(chars);
      if (result.isUnderflow()) {
        break;
      }
    }
    undecoded = ByteBuffer.allocate(input.remaining()).put(input).flip();
    if (!text.isEmpty()) {
      events.accept(new RankEvent.Output(rank, channel, text.toString()));
    }
  }
}
