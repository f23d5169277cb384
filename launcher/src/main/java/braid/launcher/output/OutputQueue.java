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

/// Output of one cell that waits to be delivered, held to the cell's limit: the first part in
/// order, then, once the cell has ended, the count of what was left out and the last part.
///
/// Memory is bounded by the limit. Whoever brings more than can be delivered waits for room, which
/// holds a rank back through its pipe. Nobody waits once the cell is to stop or has ended.
final class OutputQueue {
  /// Undelivered output of which nobody waits for room.
  private static final long ROOM_BYTES = 1 << 20;

  /// Each change from one stream to the other is an output of its own in a notebook.
  private static final int SWITCH_BYTES = 128;

  private static final int MIN_DISPLAY_BYTES = 1 << 10;
  private static final int DISPLAY_SHARE = 16;

  /// The last part is given up in pieces of at most this size.
  private static final int PIECE_CHARS = 1 << 12;

  private final ArrayDeque<OutputItem> queue = new ArrayDeque<>();
  private final Map<String, Shown> updates = new HashMap<>();
  private final Map<String, Long> sizes = new HashMap<>();
  private final ArrayDeque<OutputItem> last = new ArrayDeque<>();
  private final Set<String> idsInLast = new HashSet<>();
  private final Set<Channel> unfinished = EnumSet.noneOf(Channel.class);
  private OutputLimit limit;
  private Channel noted = Channel.STDERR;
  private @Nullable Channel stream;
  private long queuedBytes;
  private long firstLeft;
  private long updatesLeft;
  private long lastWeight;
  private long leftOutBytes;
  private long leftOutLines;
  private long leftOutDisplays;
  private boolean over;
  private boolean hurried;
  private boolean finished;
  private boolean saidLate;

  OutputQueue(OutputLimit limit) {
    this.limit = limit;
    firstLeft = limit.first();
    updatesLeft = limit.bytes();
  }

  /// Holds the cell to another limit; what was put out before counts.
  synchronized void limit(OutputLimit next) {
    firstLeft = Math.max(0, firstLeft + next.first() - limit.first());
    updatesLeft = Math.max(0, updatesLeft + next.bytes() - limit.bytes());
    limit = next;
    evict();
  }

  /// Waits until most of what was brought before is delivered. Never call it while holding a lock
  /// that delivering takes.
  synchronized void awaitRoom() {
    try {
      while (queuedBytes > ROOM_BYTES && !hurried && !finished) {
        wait();
      }
    } catch (InterruptedException e) {
      // An interrupted cell of the front prints on until it comes to its stop check.
      Thread.currentThread().interrupt();
    }
  }

  /// The cell is to stop: from here on nobody waits for room, and what finds none is left out.
  synchronized void hurry() {
    hurried = true;
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
      if (weight <= firstLeft) {
        firstLeft -= weight;
        stream = channel;
        enqueue(channel, text, text.length());
        return;
      }
      fits = lineEnd(text, Math.max(0, firstLeft - SWITCH_BYTES));
      if (fits > 0) {
        enqueue(channel, text, fits);
      }
    }
    goOver(channel);
    keep(channel, text, fits);
  }

  synchronized void shown(MimeBundle bundle, String id, boolean update) {
    long weight = weight(bundle);
    if (update) {
      update(bundle, id, weight);
    } else if (mayGrow() && weight <= firstLeft) {
      firstLeft -= weight;
      stream = null;
      enqueue(new Shown(bundle, id, false));
      if (!id.isEmpty()) {
        sizes.merge(id, weight, Math::max);
      }
    } else if (finished || weight > limit.last()) {
      leftOutDisplays++;
      sayLate();
    } else {
      goOver(Channel.STDERR);
      last.add(new Shown(bundle, id, false));
      lastWeight += weight;
      if (!id.isEmpty()) {
        idsInLast.add(id);
      }
      evict();
    }
  }

  /// Takes the next item to deliver; null where there is none yet.
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

  /// The cell has ended: counts what was left out, and lets the last part follow.
  synchronized void finish() {
    if (finished) {
      return;
    }
    finished = true;
    if (leftOutBytes > 0) {
      beginAtLine();
    }
    if (leftOutBytes > 0 || leftOutDisplays > 0) {
      say(leftOut());
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
    return !over && !(hurried && queuedBytes > ROOM_BYTES);
  }

  /// Said on the stream that went over, so that a cell that is held to recorded outputs has no
  /// stream that it has not otherwise.
  private void goOver(Channel channel) {
    if (!over) {
      over = true;
      noted = channel;
      if (!finished) {
        say("… much output: from here on only the last part is kept, and shown when the cell ends");
      }
    }
  }

  private void keep(Channel channel, String text, int from) {
    if (finished) {
      count(text, from, text.length());
      sayLate();
      return;
    }
    int piece = (int) Math.min(PIECE_CHARS, limit.last() / 8);
    for (int at = from; at < text.length(); ) {
      int to = whole(text, Math.min(text.length(), at + piece));
      long bytes = OutputItem.utf8(text, at, to);
      if (last.peekLast() instanceof Text before
          && before.channel == channel
          && before.text.length() + (to - at) <= piece) {
        before.add(text, at, to, bytes);
      } else {
        lastWeight += SWITCH_BYTES;
        last.add(new Text(channel).add(text, at, to, bytes));
      }
      lastWeight += bytes;
      evict();
      at = to;
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
          leftOutDisplays++;
          idsInLast.remove(shown.id);
        }
      }
    }
  }

  /// An update counts by how much larger it makes the display. Updates of what is in the last part
  /// take its place there.
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
    if (grows > updatesLeft) {
      leftOutDisplays++;
      return;
    }
    updatesLeft -= Math.max(0, grows);
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

  private void say(String line) {
    var whole = (unfinished.contains(noted) ? "\n" : "") + line + "; " + option() + "\n";
    enqueue(noted, whole, whole.length());
  }

  private void sayLate() {
    if (finished && !saidLate) {
      saidLate = true;
      say("… output after the cell's end is left out");
    }
  }

  private String leftOut() {
    var displays =
        leftOutDisplays == 0
            ? ""
            : String.format(Locale.ROOT, "%,d display%s", leftOutDisplays, s(leftOutDisplays));
    var text =
        leftOutBytes == 0
            ? ""
            : String.format(
                Locale.ROOT,
                "%,d bytes in %,d line%s",
                leftOutBytes,
                leftOutLines,
                s(leftOutLines));
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

  /// The last part begins in the middle of a line where some of it was given up.
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
    leftOutBytes += OutputItem.utf8(text, from, to);
    for (int i = from; i < to; i++) {
      if (text.charAt(i) == '\n') {
        leftOutLines++;
      }
    }
  }

  /// Characters of the text that have at most so many bytes: whole lines, if there is a whole one.
  private static int lineEnd(String text, long bytes) {
    long used = 0;
    int at = 0;
    int line = 0;
    while (at < text.length() && used + OutputItem.utf8(text, at, at + 1) <= bytes) {
      used += OutputItem.utf8(text, at, at + 1);
      at++;
      if (text.charAt(at - 1) == '\n') {
        line = at;
      }
    }
    return line > 0 ? line : whole(text, at);
  }

  /// No cut between the two halves of a character.
  private static int whole(String text, int at) {
    return at > 1 && at < text.length() && Character.isHighSurrogate(text.charAt(at - 1))
        ? at - 1
        : at;
  }

  private static long weight(MimeBundle bundle) {
    return Math.max(MIN_DISPLAY_BYTES, OutputItem.bytes(bundle) / DISPLAY_SHARE);
  }
}
