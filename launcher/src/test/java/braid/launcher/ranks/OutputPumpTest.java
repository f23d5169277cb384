package braid.launcher.ranks;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.ranks.RankEvent.Channel;
import braid.launcher.wire.OutputMark;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class OutputPumpTest {
  private final List<RankEvent> events = new ArrayList<>();
  private final OutputPump pump = new OutputPump(0, Channel.STDOUT, "cafe", events::add);

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /// Returns the events in one line: text as it is, marks as `<number>`.
  private String seen() {
    var seen = new StringBuilder();
    for (var event : events) {
      switch (event) {
        case RankEvent.Output output -> seen.append(output.text());
        case RankEvent.OutputMarked mark -> seen.append('<').append(mark.number()).append('>');
        default -> throw new AssertionError(event);
      }
    }
    return seen.toString();
  }

  @Test
  void textAndMarksComeInTheirOrderHoweverTheyAreTorn() {
    var mark = new String(new OutputMark("cafe", 17).bytes(), StandardCharsets.US_ASCII);
    var stream = bytes("before é" + mark + "after €\n" + mark);
    for (int piece = 1; piece <= stream.length; piece++) {
      events.clear();
      for (int index = 0; index < stream.length; index += piece) {
        int count = Math.min(piece, stream.length - index);
        var chunk = new byte[count];
        System.arraycopy(stream, index, chunk, 0, count);
        pump.accept(chunk, count);
      }
      assertThat(seen()).as("in pieces of %d", piece).isEqualTo("before é<17>after €\n<17>");
    }
  }

  @Test
  void textThatResemblesAMarkIsText() {
    var edge = String.valueOf((char) OutputMark.EDGE);
    var text = edge + "braid beef 1" + edge + edge + edge + "braid cafe x" + edge;
    var stream = bytes(text + "end");
    pump.accept(stream, stream.length);
    assertThat(seen()).isEqualTo(text + "end");
  }

  @Test
  void bytesThatAreNotUtf8AreReplacedNotLost() {
    pump.accept(new byte[] {'a', (byte) 0xff, 'b'}, 3);
    assertThat(seen()).isEqualTo("a\ufffdb");
  }
}
