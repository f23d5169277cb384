package braid.internal.memory;

import braid.internal.shared.SignalWord;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.List;
import java.util.stream.IntStream;

/// Who still holds a pooled buffer. A buffer has a number, and each time it is handed out that is
/// its next generation. A rank that lets go of one says so and waits for nobody; the last to let go
/// cleans it and says that it is clean, which is what the next generation waits for.
///
/// So a rank may close what others still read: nothing changes under them. And nobody can write to
/// a buffer once it has been cleaned.
final class BufferReclaimer {
  /// Buffers that a group can pool; what it holds beyond them is freed when it is closed.
  static final int BUFFERS = 256;

  /// A buffer's words have a cache line.
  private static final int LINE_BYTES = 64;

  static final long BYTES = (long) BUFFERS * LINE_BYTES;

  // In the first member's part, for all: the clean generation (a signal word), how many have let
  // go, and the generation that was spoiled last. In each member's part: what it let go of.
  private static final long CLEAN = 0;
  private static final long COUNT = 16;
  private static final long SPOILED = 24;
  private static final long LET_GO = 32;

  /// A board is of one epoch and its words begin as zeroes, so their epoch is a constant.
  private static final int EPOCH = 1;

  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();

  private final Members members;
  private final List<MemorySegment> parts;
  private boolean closed;

  BufferReclaimer(Members members, List<MemorySegment> parts) {
    this.members = members;
    this.parts = parts;
  }

  private MemorySegment common() {
    return parts.getFirst();
  }

  private static long line(int buffer) {
    return (long) buffer * LINE_BYTES;
  }

  /// This rank holds that generation no more; the last that lets go cleans it, unless somebody
  /// `spoiled` it: such a generation has no next one.
  synchronized void letGo(int buffer, int generation, boolean spoiled, Runnable clean) {
    if (closed) {
      return;
    }
    long line = line(buffer);
    if (spoiled) {
      WORD.setOpaque(common(), line + SPOILED, (long) generation);
    }
    WORD.setRelease(parts.get(members.place().rank()), line + LET_GO, (long) generation);
    long others = (long) WORD.getAndAdd(common(), line + COUNT, 1L);
    // All let go of a generation before any holds the next, so the count tells the last.
    if ((others + 1) % members.place().size() == 0) {
      if (!spoiled(buffer, generation)) {
        clean.run();
      }
      SignalWord.raise(common(), line + CLEAN, EPOCH, generation);
    }
  }

  /// Whether all have let go of that generation; sleeps for at most that long until they have.
  boolean over(int buffer, int generation, long nanos) {
    return generation == 0
        || SignalWord.await(common(), line(buffer) + CLEAN, EPOCH, generation, nanos);
  }

  /// Whether a generation that is over must have no next one. All ranks see the same.
  boolean spoiled(int buffer, int generation) {
    return generation > 0 && (long) WORD.getOpaque(common(), line(buffer) + SPOILED) == generation;
  }

  /// The ranks that still hold that generation.
  List<Integer> holders(int buffer, int generation) {
    return IntStream.range(0, parts.size())
        .filter(i -> (long) WORD.getAcquire(parts.get(i), line(buffer) + LET_GO) < generation)
        .mapToObj(members.ranks()::get)
        .toList();
  }

  synchronized void close() {
    closed = true;
  }
}
