package braid.launcher.output;

import braid.launcher.ranks.RankEvent.Channel;
import braid.natives.Fnv;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/// Merges the output of N ranks into one text. Rank 0's stdout passes immediately; a line of
/// another rank is shown, with its rank, only if rank 0 did not print it too. stderr is always
/// shown, with its rank.
///
/// Ranks run at their own pace, so a line may arrive before rank 0's equal line. It is held until
/// rank 0 has printed the same number of lines, until a timeout, or until the cell ends. Only
/// hashes of rank 0's lines are kept.
///
/// Memory is bounded. Lines longer than `MAX_LINE_CHARS` are compared and labelled in pieces. If a
/// rank has more than `MAX_HELD_CHARS` of held lines, or is more than `MAX_REFERENCE_LINES` lines
/// behind rank 0, its oldest lines are shown at once.
public final class OutputMerger {
  /// Receives merged text in display order, with the merger's lock held.
  public interface Sink {
    void show(Channel channel, String text);
  }

  /// Longest time that a line of a cell waits for rank 0 to print it too. Each statement begins on
  /// all ranks together.
  public static final long HOLD_NANOS = 2_000_000_000;

  /// The same in a program, which is one statement: its ranks drift apart by seconds.
  public static final long PROGRAM_HOLD_NANOS = 10_000_000_000L;

  /// A rank that is far ahead waits this long, times `IDLE_INTERVALS`, for the next line of rank 0.
  private static final long INTERVAL_MILLIS = 100;

  private static final int IDLE_INTERVALS = 20;

  /// Number of rank 0's lines to search for an equal line if a rank omitted lines.
  private static final int WINDOW_LINES = 256;

  static final int MAX_LINE_CHARS = 1 << 18;
  static final int MAX_HELD_CHARS = 1 << 20;
  static final int MAX_REFERENCE_LINES = 1 << 20;

  /// Memory of a held line besides its characters.
  private static final int HELD_LINE_BYTES = 64;

  private record HeldLine(String line, long hash, long sinceNanos) {
    long weight() {
      return (long) line.length() + HELD_LINE_BYTES;
    }
  }

  private static final class RankLines {
    final ArrayDeque<HeldLine> held = new ArrayDeque<>();
    final StringBuilder partial = new StringBuilder();
    long heldWeight;
    long lines;
    long next;

    /// Lines since the last equal one that were shown before rank 0 had printed as many.
    long early;

    void hold(String line, long sinceNanos) {
      var kept = new HeldLine(line, Fnv.hash(line), sinceNanos);
      held.add(kept);
      heldWeight += kept.weight();
    }
  }

  /// Hashes of rank 0's latest lines, by line number.
  private static final class Reference {
    private long[] ring = new long[1 << 10];
    private long begin;
    private long end;

    /// Adds a hash; lines before `needed` may be dropped.
    void add(long hash, long needed) {
      begin = Math.max(begin, Math.min(needed, end));
      if (end - begin == ring.length) {
        if (ring.length < MAX_REFERENCE_LINES) {
          grow();
        } else {
          begin++;
        }
      }
      ring[at(end++, ring)] = hash;
    }

    private void grow() {
      var larger = new long[2 * ring.length];
      for (long line = begin; line < end; line++) {
        larger[at(line, larger)] = ring[at(line, ring)];
      }
      ring = larger;
    }

    private static int at(long line, long[] ring) {
      return (int) (line & (ring.length - 1));
    }

    long lines() {
      return end;
    }

    long find(long hash, long from) {
      long first = Math.max(from, begin);
      long last = Math.min(end, first + WINDOW_LINES);
      for (long line = first; line < last; line++) {
        if (ring[at(line, ring)] == hash) {
          return line;
        }
      }
      return -1;
    }
  }

  private final Sink sink;
  private final long holdNanos;
  private final List<RankLines> ranks = new ArrayList<>();
  private final List<StringBuilder> errors = new ArrayList<>();
  private final Reference reference = new Reference();
  private final boolean referenceTakesPart;
  private final OutputMode mode;
  private final int first;
  private boolean atLineStart = true;

  /// Number of rank 0's lines when it was last found inactive; negative before.
  private long idleAt = -1;

  private boolean blocks = true;

  /// Creates a merger; without `referenceTakesPart` rank 0 does not run this cell, and every line
  /// is shown with its rank.
  public OutputMerger(int ranks, boolean referenceTakesPart, Sink sink) {
    this(ranks, referenceTakesPart ? 0 : 1, OutputMode.DIFF, HOLD_NANOS, sink);
  }

  /// Creates a merger; `first` is the lowest rank that runs this cell.
  OutputMerger(int ranks, int first, OutputMode mode, long holdNanos, Sink sink) {
    this.sink = sink;
    this.holdNanos = holdNanos;
    this.mode = mode;
    this.first = first;
    this.referenceTakesPart = first == 0;
    for (int i = 0; i < ranks; i++) {
      this.ranks.add(new RankLines());
      errors.add(new StringBuilder());
    }
  }

  /// Blocks while the rank is far ahead of an active rank 0: its pipe then blocks it, and equal
  /// lines stay equal. For a rank 0 that has died or ended the cell it waits only once: a rank that
  /// must stop must first finish printing.
  synchronized void keepPace(int rank) {
    if (mode != OutputMode.DIFF || rank == 0 || !referenceTakesPart) {
      return;
    }
    try {
      while (blocks && ranks.get(rank).heldWeight > MAX_HELD_CHARS / 2) {
        long before = reference.lines();
        if (before == idleAt) {
          return;
        }
        for (int i = 0; blocks && i < IDLE_INTERVALS && reference.lines() == before; i++) {
          wait(INTERVAL_MILLIS);
        }
        if (reference.lines() == before) {
          idleAt = before;
          return;
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /// Stops blocking, because the cell must end.
  synchronized void stopBlocking() {
    blocks = false;
    notifyAll();
  }

  public synchronized void accept(int rank, Channel channel, String text, long nowNanos) {
    if (ranks.size() == 1) {
      sink.show(channel, text);
    } else if (channel == Channel.STDERR) {
      lines(
          errors.get(rank),
          text,
          line -> sink.show(Channel.STDERR, "[" + rank + "] " + ended(line)));
    } else if (mode == OutputMode.FIRST) {
      if (rank == first) {
        sink.show(Channel.STDOUT, text);
      }
    } else if (mode == OutputMode.ALL) {
      lines(ranks.get(rank).partial, text, line -> show(rank, line));
    } else if (rank == 0) {
      var unfinished = ranks.get(0).partial;
      // If a line of another rank has cut this one before its end, the end would be an empty line.
      boolean ended = atLineStart && !unfinished.isEmpty() && text.startsWith("\n");
      sink.show(Channel.STDOUT, ended ? text.substring(1) : text);
      atLineStart = text.endsWith("\n");
      lines(unfinished, text, line -> reference.add(Fnv.hash(line), needed()));
      for (int other = 1; other < ranks.size(); other++) {
        settle(other, nowNanos);
      }
      notifyAll();
    } else {
      lines(ranks.get(rank).partial, text, line -> ranks.get(rank).hold(line, nowNanos));
      settle(rank, nowNanos);
    }
  }

  /// Shows lines that have waited long enough.
  public synchronized void tick(long nowNanos) {
    for (int rank = 1; rank < ranks.size(); rank++) {
      settle(rank, nowNanos);
    }
  }

  /// Ends the cell: no later line can equal a held one.
  public synchronized void finish() {
    var unfinished = ranks.getFirst().partial;
    if (mode == OutputMode.DIFF && !unfinished.isEmpty()) {
      reference.add(Fnv.hash(unfinished + "\n"), needed());
      unfinished.setLength(0);
    }
    for (int rank = mode == OutputMode.ALL ? 0 : 1; rank < ranks.size(); rank++) {
      var other = ranks.get(rank);
      if (!other.partial.isEmpty()) {
        other.hold(other.partial + "\n", 0);
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
      long match = reference.find(head.hash, other.next);
      if (match < 0 && other.early > 0) {
        // Lines that were shown early may equal those that rank 0 has printed since.
        long around = other.next + other.early - WINDOW_LINES / 2;
        match = reference.find(head.hash, Math.max(other.next, around));
      }
      if (match >= 0) {
        other.next = match + 1;
        other.early = 0;
      } else if (mayBeShown(other, head, nowNanos)) {
        show(rank, head.line);
        if (reference.lines() <= other.lines) {
          other.early++;
        }
      } else {
        return;
      }
      other.held.remove();
      other.heldWeight -= head.weight();
      other.lines++;
    }
  }

  /// Returns true if a held line may be shown: not within a line of rank 0, unless it has waited
  /// too long.
  private boolean mayBeShown(RankLines other, HeldLine head, long nowNanos) {
    boolean waited = nowNanos == Long.MAX_VALUE || nowNanos - head.sinceNanos > holdNanos;
    boolean unequal = !referenceTakesPart || reference.lines() > other.lines;
    return waited || other.heldWeight > MAX_HELD_CHARS || (unequal && atLineStart);
  }

  /// Returns the first line of rank 0 that another rank may still print.
  private long needed() {
    return ranks.stream().skip(1).mapToLong(other -> other.next).min().orElse(0);
  }

  private void show(int rank, String line) {
    sink.show(Channel.STDOUT, (atLineStart ? "" : "\n") + "[" + rank + "] " + ended(line));
    atLineStart = true;
  }

  private interface Line {
    void take(String lineWithEnd);
  }

  private static void lines(StringBuilder partial, String text, Line take) {
    for (int from = 0; from < text.length(); ) {
      int end = text.indexOf('\n', from);
      int to =
          Math.min(end < 0 ? text.length() : end + 1, from + MAX_LINE_CHARS - partial.length());
      partial.append(text, from, to);
      if (partial.length() == MAX_LINE_CHARS || to == end + 1) {
        take.take(partial.toString());
        partial.setLength(0);
      }
      from = to;
    }
  }

  /// Adds a line end to a piece of a long line.
  private static String ended(String line) {
    return line.endsWith("\n") ? line : line + "\n";
  }
}
