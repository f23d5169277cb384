package braid.launcher.output;

import braid.launcher.ranks.RankEvent.Channel;
import braid.natives.Fnv;
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
///
/// Memory is bounded. Lines longer than `MAX_LINE_CHARS` are compared and labelled in pieces. A
/// rank with more than `MAX_HELD_CHARS` of held lines has its oldest ones shown at once, and so has
/// a rank that is more than `MAX_REFERENCE_LINES` lines behind rank 0.
public final class OutputMerger {
  /// Shows merged text. Called with the merger's lock held, in the order of showing.
  public interface Sink {
    void show(Channel channel, String text);
  }

  /// How long a line may wait for rank 0 to print it too.
  public static final long HOLD_NANOS = 2_000_000_000;

  /// Rank 0 goes on printing as long as it prints a line in so many times this time.
  private static final long PACE_MILLIS = 100;

  private static final int PACES = 6;

  /// How far ahead in rank 0's output an equal line is looked for, when a rank left lines out.
  private static final int WINDOW_LINES = 256;

  static final int MAX_LINE_CHARS = 1 << 18;
  static final int MAX_HELD_CHARS = 1 << 20;
  static final int MAX_REFERENCE_LINES = 1 << 20;

  /// Memory that a held line takes beside its characters.
  private static final int HELD_LINE_BYTES = 64;

  private record Held(String line, long hash, long sinceNanos) {
    long weight() {
      return (long) line.length() + HELD_LINE_BYTES;
    }
  }

  private static final class Other {
    final ArrayDeque<Held> held = new ArrayDeque<>();
    final StringBuilder partial = new StringBuilder();
    long heldWeight;
    long lines;
    long next;

    void hold(String line, long sinceNanos) {
      var kept = new Held(line, Fnv.hash(line), sinceNanos);
      held.add(kept);
      heldWeight += kept.weight();
    }
  }

  /// Hashes of rank 0's lines, the latest ones, by the number of the line.
  private static final class Reference {
    private long[] ring = new long[1 << 10];
    private long begin;
    private long end;

    /// Lines before `needed` may be forgotten.
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
  private final List<Other> ranks = new ArrayList<>();
  private final List<StringBuilder> errors = new ArrayList<>();
  private final Reference reference = new Reference();
  private final boolean referenceTakesPart;
  private final OutputMode mode;
  private final int first;
  private boolean atLineStart = true;

  /// Rank 0's lines when it was last found not to go on; negative before that.
  private long restedAt = -1;

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

  /// Waits while the rank is far ahead of rank 0 and rank 0 goes on printing: its pipe then holds
  /// it back, and equal lines stay equal. For a rank 0 that has died or ended the cell it waits
  /// only once: a rank that is to stop must first get rid of all that it is printing.
  synchronized void keepPace(int rank) {
    if (mode != OutputMode.DIFF || rank == 0 || !referenceTakesPart) {
      return;
    }
    try {
      while (ranks.get(rank).heldWeight > MAX_HELD_CHARS / 2) {
        long before = reference.lines();
        if (before == restedAt) {
          return;
        }
        for (int i = 0; i < PACES && reference.lines() == before; i++) {
          wait(PACE_MILLIS);
        }
        if (reference.lines() == before) {
          restedAt = before;
          return;
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
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
      sink.show(Channel.STDOUT, text);
      atLineStart = text.endsWith("\n");
      lines(ranks.get(0).partial, text, line -> reference.add(Fnv.hash(line), needed()));
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

  /// The cell is over: nothing more will come that a held line could equal.
  public synchronized void finish() {
    var unended = ranks.getFirst().partial;
    if (mode == OutputMode.DIFF && !unended.isEmpty()) {
      reference.add(Fnv.hash(unended + "\n"), needed());
      unended.setLength(0);
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
      if (match >= 0) {
        other.next = match + 1;
      } else if (mayBeShown(other, head, nowNanos)) {
        show(rank, head.line);
      } else {
        return;
      }
      other.held.remove();
      other.heldWeight -= head.weight();
      other.lines++;
    }
  }

  /// Not in the middle of a line of rank 0's, unless that line has not ended for long.
  private boolean mayBeShown(Other other, Held head, long nowNanos) {
    boolean waited = nowNanos == Long.MAX_VALUE || nowNanos - head.sinceNanos > HOLD_NANOS;
    boolean unequal = !referenceTakesPart || reference.lines() > other.lines;
    return waited || other.heldWeight > MAX_HELD_CHARS || (unequal && atLineStart);
  }

  /// The first line of rank 0's that another rank may still print too.
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

  /// A piece of a long line is shown as a line.
  private static String ended(String line) {
    return line.endsWith("\n") ? line : line + "\n";
  }
}
