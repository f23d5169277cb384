package braid.launcher.output;

import braid.launcher.output.OutputItem.Shown;
import braid.launcher.output.OutputItem.Text;
import braid.launcher.ranks.RankEvent.Channel;
import braid.model.MimeBundle;
import java.util.ArrayDeque;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Undelivered output of one cell, within the cell's limit: the first part in order; then, after
/// the cell has ended, the count of omitted output and the last part.
///
/// Memory is bounded by the limit. Producers block while there is no room, which blocks a rank
/// through its pipe. No producer blocks once the cell must stop or has ended.
final class OutputQueue {
  /// Undelivered output below which producers do not block.
  private static final long ROOM_BYTES = 1 << 20;

  /// Size of a change between streams, which is a new output in a notebook.
  private static final int SWITCH_BYTES = 128;

  private static final int MIN_DISPLAY_BYTES = 1 << 10;
  private static final int DISPLAY_SHARE = 16;

  /// Size of the pieces in which the last part is dropped.
  private static final int PIECE_CHARS = 1 << 12;

  private final ArrayDeque<OutputItem> queue = new ArrayDeque<>();
  private final Map<String, Shown> updates = new HashMap<>();
  private final Map<String, Long> sizes = new HashMap<>();
  private final ArrayDeque<OutputItem> last = new ArrayDeque<>();
  private final Set<String> idsInLast = new HashSet<>();
  private final Set<Channel> unfinished = EnumSet.noneOf(Channel.class);
  private OutputLimit limit;
  private Channel noteChannel = Channel.STDERR;
  private @Nullable Channel stream;
  private long queuedBytes;
  private long firstRemaining;
  private long updatesRemaining;
  private long lastWeight;
  private long omittedBytes;
  private long omittedLines;
  private long omittedDisplays;
  private boolean exceeded;
  private boolean nonBlocking;
  private boolean finished;
  private boolean latePrinted;

  OutputQueue(OutputLimit limit) {
    this.limit = limit;
    firstRemaining = limit.first();
    updatesRemaining = limit.bytes();
  }

  /// Applies another limit; earlier output counts.
  synchronized void limit(OutputLimit next) {
    firstRemaining = Math.max(0, firstRemaining + next.first() - limit.first());
    updatesRemaining = Math.max(0, updatesRemaining + next.bytes() - limit.bytes());
    limit = next;
    evict();
  }

  /// Blocks until most earlier output is delivered. Never call it while holding a lock that
  /// delivery takes.
  synchronized void awaitRoom() {
    try {
      while (queuedBytes > ROOM_BYTES && !nonBlocking && !finished) {
        wait();
      }
    } catch (InterruptedException e) {
      // An interrupted `%%front` cell prints until its next stop check.
      Thread.currentThread().interrupt();
    }
  }

  /// Stops blocking: no producer waits for room, and output without room is dropped.
  synchronized void stopBlocking() {
    nonBlocking = true;
    notifyAll();
  }

  synchronized void text(Channel channel, String text) {
    if (text.isEmpty()) {
      return;
    }
    int fits = 0;
    if (mayGrow()) {
      long weight =
          OutputItem.utf8(text, 0, text.length()) + (channel == stream ? 0 : SWITCH_BYTES);
      if (weight <= firstRemaining) {
        firstRemaining -= weight;
        stream = channel;
        enqueue(channel, text, text.length());
        return;
      }
      fits = lineEnd(text, Math.max(0, firstRemaining - SWITCH_BYTES));
      if (fits > 0) {
        enqueue(channel, text, fits);
      }
    }
    exceed(channel);
    keep(channel, text, fits);
  }

  synchronized void shown(MimeBundle bundle, String id, boolean update) {
    long weight = weight(bundle);
    if (update) {
      update(bundle, id, weight);
    } else if (mayGrow() && weight <= firstRemaining) {
      firstRemaining -= weight;
      stream = null;
      enqueue(new Shown(bundle, id, false));
      if (!id.isEmpty()) {
        sizes.merge(id, weight, Math::max);
      }
    } else if (finished || weight > limit.last()) {
      omittedDisplays++;
      printLate();
    } else {
      exceed(Channel.STDERR);
      last.add(new Shown(bundle, id, false));
      lastWeight += weight;
      if (!id.isEmpty()) {
        idsInLast.add(id);
      }
      evict();
    }
  }

  /// Returns the next item to deliver, or null.
  synchronized @Nullable OutputItem next() {
    var item = queue.poll();
    if (item != null) {
      queuedBytes -= item.bytes();
      if (item instanceof Shown shown && shown.update) {
        updates.remove(shown.id);
      }
      notifyAll();
    }
    return item;
  }

  /// Ends the cell: appends the count of omitted output and the last part.
  synchronized void finish() {
    if (finished) {
      return;
    }
    finished = true;
    if (omittedBytes > 0) {
      beginAtLine();
    }
    if (omittedBytes > 0 || omittedDisplays > 0) {
      print(omitted());
    }
    for (var item : last) {
      switch (item) {
        case Text text when text.text.isEmpty() -> {}
        case Text text -> enqueue(text.channel, text.text.toString(), text.text.length());
        case Shown shown -> enqueue(shown);
      }
    }
    last.clear();
    idsInLast.clear();
    lastWeight = 0;
    notifyAll();
  }

  private boolean mayGrow() {
    return !exceeded && !(nonBlocking && queuedBytes > ROOM_BYTES);
  }

  /// Reports the exceeded limit, on the stream that exceeded it: a cell compared with recorded
  /// outputs must not get an additional stream.
  private void exceed(Channel channel) {
    if (!exceeded) {
      exceeded = true;
      noteChannel = channel;
      if (!finished) {
        print(
            "… much output: from here on only the last part is kept, and shown when the cell ends");
      }
    }
  }

  private void keep(Channel channel, String text, int from) {
    if (finished) {
      count(text, from, text.length());
      printLate();
      return;
    }
    int piece = (int) Math.min(PIECE_CHARS, limit.last() / 8);
    for (int position = from; position < text.length(); ) {
      int to = whole(text, Math.min(text.length(), position + piece));
      long bytes = OutputItem.utf8(text, position, to);
      if (last.peekLast() instanceof Text before
          && before.channel == channel
          && before.text.length() + (to - position) <= piece) {
        before.add(text, position, to, bytes);
      } else {
        lastWeight += SWITCH_BYTES;
        last.add(new Text(channel).add(text, position, to, bytes));
      }
      lastWeight += bytes;
      evict();
      position = to;
    }
  }

  private void evict() {
    while (lastWeight > limit.last() && !last.isEmpty()) {
      switch (last.removeFirst()) {
        case Text text -> {
          lastWeight -= text.bytes + SWITCH_BYTES;
          count(text.text, 0, text.text.length());
        }
        case Shown shown -> {
          lastWeight -= weight(shown.bundle);
          omittedDisplays++;
          idsInLast.remove(shown.id);
        }
      }
    }
  }

  /// Adds an update, which counts by the growth of its display. Updates of displays in the last
  /// part replace them there.
  private void update(MimeBundle bundle, String id, long weight) {
    if (idsInLast.contains(id)) {
      for (var item : last) {
        if (item instanceof Shown shown && shown.id.equals(id)) {
          lastWeight += weight - weight(shown.bundle);
          shown.bundle = bundle;
        }
      }
      evict();
      return;
    }
    long grows = weight - sizes.getOrDefault(id, 0L);
    if (grows > updatesRemaining) {
      omittedDisplays++;
      return;
    }
    updatesRemaining -= Math.max(0, grows);
    sizes.merge(id, weight, Math::max);
    var waiting = updates.get(id);
    if (waiting == null) {
      waiting = new Shown(bundle, id, true);
      updates.put(id, waiting);
      enqueue(waiting);
    } else {
      queuedBytes += OutputItem.bytes(bundle) - waiting.bytes();
      waiting.bundle = bundle;
    }
  }

  private void enqueue(Channel channel, CharSequence text, int length) {
    long bytes = OutputItem.utf8(text, 0, length);
    if (queue.peekLast() instanceof Text before && before.channel == channel) {
      before.add(text, 0, length, bytes);
    } else {
      queue.add(new Text(channel).add(text, 0, length, bytes));
    }
    queuedBytes += bytes;
    if (text.charAt(length - 1) == '\n') {
      unfinished.remove(channel);
    } else {
      unfinished.add(channel);
    }
  }

  private void enqueue(OutputItem item) {
    queue.add(item);
    queuedBytes += item.bytes();
  }

  private void print(String line) {
    var whole = (unfinished.contains(noteChannel) ? "\n" : "") + line + "; " + option() + "\n";
    enqueue(noteChannel, whole, whole.length());
  }

  private void printLate() {
    if (finished && !latePrinted) {
      latePrinted = true;
      print("… output after the cell's end is left out");
    }
  }

  private String omitted() {
    var displays =
        omittedDisplays == 0
            ? ""
            : String.format(Locale.ROOT, "%,d display%s", omittedDisplays, s(omittedDisplays));
    var text =
        omittedBytes == 0
            ? ""
            : String.format(
                Locale.ROOT,
                "%,d bytes in %,d line%s",
                omittedBytes,
                omittedLines,
                s(omittedLines));
    return "… "
        + text
        + (text.isEmpty() || displays.isEmpty() ? "" : " and ")
        + displays
        + " left out";
  }

  private static String s(long count) {
    return count == 1 ? "" : "s";
  }

  private String option() {
    return OutputLimit.OPTION + " " + limit;
  }

  /// Drops the rest of a line at the beginning of the last part.
  private void beginAtLine() {
    if (last.peekFirst() instanceof Text begun) {
      int end = begun.text.indexOf("\n") + 1;
      if (end > 0) {
        count(begun.text, 0, end);
        begun.text.delete(0, end);
      }
    }
  }

  private void count(CharSequence text, int from, int to) {
    omittedBytes += OutputItem.utf8(text, from, to);
    for (int i = from; i < to; i++) {
      if (text.charAt(i) == '\n') {
        omittedLines++;
      }
    }
  }

  /// Returns the number of characters that fit into `bytes`: whole lines, if at least one fits.
  private static int lineEnd(String text, long bytes) {
    long used = 0;
    int position = 0;
    int line = 0;
    while (position < text.length()
        && used + OutputItem.utf8(text, position, position + 1) <= bytes) {
      used += OutputItem.utf8(text, position, position + 1);
      position++;
      if (text.charAt(position - 1) == '\n') {
        line = position;
      }
    }
    return line > 0 ? line : whole(text, position);
  }

  /// Returns a position that does not split a surrogate pair.
  private static int whole(String text, int position) {
    return position > 1
            && position < text.length()
            && Character.isHighSurrogate(text.charAt(position - 1))
        ? position - 1
        : position;
  }

  private static long weight(MimeBundle bundle) {
    return Math.max(MIN_DISPLAY_BYTES, OutputItem.bytes(bundle) / DISPLAY_SHARE);
  }
}
