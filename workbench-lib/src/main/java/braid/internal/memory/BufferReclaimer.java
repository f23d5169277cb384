package braid.internal.memory;

import braid.internal.shared.SignalWord;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.List;
import java.util.stream.IntStream;

/// Tracks which ranks still hold a pooled buffer. Each time a buffer is lent, its generation
/// increases. A rank releases a generation without waiting; the last rank to release it clears the
/// buffer and signals that it is clean, and the next generation waits for that signal.
///
/// Thus a rank may close a buffer that others still read: its contents do not change. No rank can
/// write to a buffer after it was cleared.
final class BufferReclaimer {
  /// Number of buffers that a group can pool; others are freed when they are closed.
  static final int BUFFERS = 256;

  /// One cache line per buffer.
  private static final int LINE_BYTES = 64;

  static final long BYTES = (long) BUFFERS * LINE_BYTES;

  // The first member's part holds the clean generation (a signal word), the number of releases, and
  // the generation that was spoiled last. Each member's part holds the generation it released last.
  private static final long CLEAN = 0;
  private static final long COUNT = 16;
  private static final long SPOILED = 24;
  private static final long RELEASED = 32;

  /// A constant, because a board belongs to one epoch and its words start as zeroes.
  private static final int EPOCH = 1;

  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();

  private final Members members;
  private final List<MemorySegment> parts;
  private boolean closed;

  BufferReclaimer(Members members, List<MemorySegment> parts) {
    this.members = members;
    this.parts = parts;
  }

  private MemorySegment first() {
    return parts.getFirst();
  }

  private static long line(int buffer) {
    return (long) buffer * LINE_BYTES;
  }

  /// Releases a generation on this rank. The last rank to release it clears the buffer, unless a
  /// rank `spoiled` it; a spoiled buffer is not lent again.
  synchronized void release(int buffer, int generation, boolean spoiled, Runnable clean) {
    if (closed) {
      return;
    }
    long line = line(buffer);
    if (spoiled) {
      WORD.setOpaque(first(), line + SPOILED, (long) generation);
    }
    WORD.setRelease(parts.get(members.place().rank()), line + RELEASED, (long) generation);
    long others = (long) WORD.getAndAdd(first(), line + COUNT, 1L);
    // All ranks release a generation before any holds the next, so the count identifies the last
    // rank.
    if ((others + 1) % members.place().size() == 0) {
      if (!spoiled(buffer, generation)) {
        clean.run();
      }
      SignalWord.raise(first(), line + CLEAN, EPOCH, generation);
    }
  }

  /// Waits until all ranks have released a generation, for at most `nanos`. Returns whether they
  /// have.
  boolean awaitClean(int buffer, int generation, long nanos) {
    return generation == 0
        || SignalWord.await(first(), line(buffer) + CLEAN, EPOCH, generation, nanos);
  }

  /// Returns whether a released generation was spoiled. All ranks see the same.
  boolean spoiled(int buffer, int generation) {
    return generation > 0 && (long) WORD.getOpaque(first(), line(buffer) + SPOILED) == generation;
  }

  /// Returns the ranks that still hold a generation.
  List<Integer> holders(int buffer, int generation) {
    return IntStream.range(0, parts.size())
        .filter(i -> (long) WORD.getAcquire(parts.get(i), line(buffer) + RELEASED) < generation)
        .mapToObj(members.ranks()::get)
        .toList();
  }

  synchronized void close() {
    closed = true;
  }
}
