package braid.launcher.output;

import braid.launcher.ranks.RankEvent.Channel;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/// Turns what N ranks print into one text. Rank 0's stdout passes as it comes; a line of another
/// rank is shown, with its rank before it, only if rank 0 did not print it too. stderr is always
/// shown, with its rank.
///
/// Ranks run at their own pace, so a line may come before rank 0's equal line: it is held until
/// rank 0 has printed as many lines, for a while, or until the cell ends. Only hashes of rank 0's
/// lines are kept.
public final class OutputMerger {
  /// Shows merged text. Called with the merger's lock held, in the order of showing.
  public interface Sink {
    void show(Channel channel, String text);
  }

  /// How long a line may wait for rank 0 to print it too.
  public static final long HOLD_NANOS = 2_000_000_000;

  /// How far ahead in rank 0's output an equal line is looked for, when a rank left lines out.
  private static final int WINDOW_LINES = 256;

  private record Held(String line, long sinceNanos) {}

  private static final class Other {
    final ArrayDeque<Held> held = new ArrayDeque<>();
    final StringBuilder partial = new StringBuilder();
    long lines;
    int next;
  }

  private final Sink sink;
  private final List<Other> ranks = new ArrayList<>();
  private final List<StringBuilder> errors = new ArrayList<>();
  private final List<Long> reference = new ArrayList<>();
  private final boolean referenceTakesPart;
  private final OutputMode mode;
  private final int first;
  private boolean atLineStart = true;

  /// `referenceTakesPart` is whether rank 0 runs this cell at all; without it every line is shown
  /// with its rank.
  public OutputMerger(int ranks, boolean referenceTakesPart, Sink sink) {
    this(ranks, referenceTakesPart ? 0 : 1, OutputMode.DIFF, sink);
  }

  /// `first` is the lowest rank that runs this cell.
  OutputMerger(int ranks, int first, OutputMode mode, Sink sink) {
    this.sink = sink;
    this.mode = mode;
    this.first = first;
    this.referenceTakesPart = first == 0;
    for (int i = 0; i < ranks; i++) {
      this.ranks.add(new Other());
      errors.add(new StringBuilder());
    }
  }

  public synchronized void accept(int rank, Channel channel, String text, long nowNanos) {
    if (ranks.size() == 1) {
      sink.show(channel, text);
    } else if (channel == Channel.STDERR) {
      lines(errors.get(rank), text, line -> sink.show(Channel.STDERR, "[" + rank + "] " + line));
    } else if (mode == OutputMode.FIRST) {
      if (rank == first) {
        sink.show(Channel.STDOUT, text);
      }
    } else if (mode == OutputMode.ALL) {
      lines(ranks.get(rank).partial, text, line -> show(rank, line));
    } else if (rank == 0) {
      sink.show(Channel.STDOUT, text);
      atLineStart = text.endsWith("\n");
      lines(ranks.get(0).partial, text, line -> reference.add(hash(line)));
      for (int other = 1; other < ranks.size(); other++) {
        settle(other, nowNanos);
      }
    } else {
      lines(
          ranks.get(rank).partial,
          text,
          line -> ranks.get(rank).held.add(new Held(line, nowNanos)));
      settle(rank, nowNanos);
    }
  }

  /// Shows lines that have waited long enough.
  public synchronized void tick(long nowNanos) {
    for (int rank = 1; rank < ranks.size(); rank++) {
      settle(rank, nowNanos);
    }
  }

  /// The cell is over: nothing more will come that a held line could equal.
  public synchronized void finish() {
    for (int rank = mode == OutputMode.ALL ? 0 : 1; rank < ranks.size(); rank++) {
      var other = ranks.get(rank);
      if (!other.partial.isEmpty()) {
        other.held.add(new Held(other.partial + "\n", 0));
        other.partial.setLength(0);
      }
      settle(rank, Long.MAX_VALUE);
    }
    for (int rank = 0; rank < errors.size(); rank++) {
      var left = errors.get(rank);
      if (!left.isEmpty()) {
        sink.show(Channel.STDERR, "[" + rank + "] " + left + "\n");
        left.setLength(0);
      }
    }
  }

  private void settle(int rank, long nowNanos) {
    var other = ranks.get(rank);
    while (!other.held.isEmpty()) {
      var head = other.held.peek();
      int match = find(hash(head.line), other.next);
      if (match >= 0) {
        other.next = match + 1;
      } else if (mayBeShown(other, head, nowNanos)) {
        show(rank, head.line);
      } else {
        return;
      }
      other.held.remove();
      other.lines++;
    }
  }

  /// Not in the middle of a line of rank 0's, unless that line has not ended for long.
  private boolean mayBeShown(Other other, Held head, long nowNanos) {
    boolean waited = nowNanos == Long.MAX_VALUE || nowNanos - head.sinceNanos > HOLD_NANOS;
    boolean unequal = !referenceTakesPart || reference.size() > other.lines;
    return waited || (unequal && atLineStart);
  }

  private int find(long hash, int from) {
    int end = Math.min(reference.size(), from + WINDOW_LINES);
    for (int i = from; i < end; i++) {
      if (reference.get(i) == hash) {
        return i;
      }
    }
    return -1;
  }

  private void show(int rank, String line) {
    sink.show(Channel.STDOUT, (atLineStart ? "" : "\n") + "[" + rank + "] " + line);
    atLineStart = true;
  }

  private interface Line {
    void take(String lineWithEnd);
  }

  private static void lines(StringBuilder partial, String text, Line take) {
    int from = 0;
    for (int end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
      take.take(partial.append(text, from, end + 1).toString());
      partial.setLength(0);
      from = end + 1;
    }
    partial.append(text, from, text.length());
  }

  /// FNV-1a over the characters: 64 bits, so that two different lines of a cell do not meet.
  private static long hash(String line) {
    long hash = 0xcbf29ce484222325L;
    for (int i = 0; i < line.length(); i++) {
      hash = (hash ^ line.charAt(i)) * 0x100000001b3L;
    }
    return hash;
  }
}
