package braid.launcher.kernel.output;

import java.time.Duration;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;

/// Coalesces prints into few messages: clients stall on a kernel that sends one per line. Text
/// after a silence is sent at once, so that a single print is not late; later text is gathered for
/// `GATHER`. The order of the two streams is kept.
final class CoalescedText {
  static final Duration GATHER = Duration.ofMillis(50);

  /// More than this is sent at once, in several messages, so that none is too large to display.
  private static final int FULL_CHARS = 1 << 18;

  private final ScheduledExecutorService timer;
  private final BiConsumer<String, String> publish;
  private final StringBuilder text = new StringBuilder();
  private String stream = "";
  private boolean gathering;

  /// @param publish receives the stream's name and text; must not block
  CoalescedText(ScheduledExecutorService timer, BiConsumer<String, String> publish) {
    this.timer = timer;
    this.publish = publish;
  }

  synchronized void append(String toStream, String more) {
    if (!stream.equals(toStream)) {
      flush();
      stream = toStream;
    }
    text.append(more);
    if (!gathering) {
      gathering = true;
      flush();
      gather();
    } else if (text.length() >= FULL_CHARS) {
      flush();
    }
  }

  synchronized void flush() {
    if (!text.isEmpty()) {
      for (int from = 0; from < text.length(); ) {
        int to = Math.min(text.length(), from + FULL_CHARS);
        if (to < text.length() && Character.isHighSurrogate(text.charAt(to - 1))) {
          to--;
        }
        publish.accept(stream, text.substring(from, to));
        from = to;
      }
      text.setLength(0);
    }
  }

  private void gather() {
    var _ = timer.schedule(this::gathered, GATHER.toMillis(), TimeUnit.MILLISECONDS);
  }

  private synchronized void gathered() {
    if (text.isEmpty()) {
      gathering = false;
    } else {
      flush();
      gather();
    }
  }
}
