package braid.internal.memory;

import braid.internal.shared.ControlMemory;
import braid.internal.shared.SignalWord;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.List;
import java.util.stream.IntStream;

/// Tracks which ranks still hold a pooled buffer. Each time a buffer is lent, its generation
/// increases. A rank releases a generation without waiting. Before the next generation is lent, a
/// rank waits until all have released the last one, clears its own part, and waits until all parts
/// are clear.
///
/// Thus a rank may close a buffer that others still read: its contents do not change. No rank can
/// write to a buffer after it was cleared. A rank writes only words of its own part, so that they
/// can be copied to ranks of other hosts.
final class BufferReclaimer {
  /// Number of buffers that a group can pool; others are freed when they are closed.
  static final int BUFFERS = 256;

  /// One cache line per buffer.
  private static final int LINE_BYTES = 64;

  static final long BYTES = (long) BUFFERS * LINE_BYTES;

  // Signal words of a member: the generations that it has released and cleared last. A plain word:
  // the generation that it has spoiled last.
  private static final long RELEASED = 0;
  private static final long CLEAN = 16;
  private static final long SPOILED = 32;

  /// A constant, because a board belongs to one epoch and its words start as zeroes.
  private static final int EPOCH = 1;

  private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();

  private final Members members;
  private final ControlMemory memory;
  private final long place;
  private boolean closed;

  /// @param place offset of this object's [#BYTES] in each part of the memory
  BufferReclaimer(Members members, ControlMemory memory, long place) {
    this.members = members;
    this.memory = memory;
    this.place = place;
  }

  private long line(int buffer) {
    return place + (long) buffer * LINE_BYTES;
  }

  private int self() {
    return members.place().rank();
  }

  /// Releases a generation on this rank. A buffer that a rank `spoiled` is not lent again.
  synchronized void release(int buffer, int generation, boolean spoiled) {
    if (closed) {
      return;
    }
    long line = line(buffer);
    if (spoiled) {
      WORD.setOpaque(memory.part(self()), line + SPOILED, (long) generation);
      memory.publish(line + SPOILED, Long.BYTES);
    }
    memory.raise(self(), line + RELEASED, EPOCH, generation);
  }

  /// Waits until all ranks have released a generation and cleared their parts, for at most `nanos`.
  /// Returns whether they have. A spoiled buffer is not cleared. All members call it together.
  ///
  /// @param clean clears this rank's part
  boolean awaitClean(int buffer, int generation, Runnable clean, long nanos) {
    if (generation == 0) {
      return true;
    }
    long end = System.nanoTime() + nanos;
    if (!all(line(buffer) + RELEASED, generation, end)) {
      return false;
    }
    if (spoiled(buffer, generation)) {
      return true;
    }
    long cleared = line(buffer) + CLEAN;
    if (!SignalWord.reached(memory.part(self()), cleared, EPOCH, generation)) {
      clean.run();
      memory.raise(self(), cleared, EPOCH, generation);
    }
    return all(cleared, generation, end);
  }

  /// Waits until all members' words have reached a generation.
  private boolean all(long offset, int generation, long end) {
    for (int i = 0; i < members.place().size(); i++) {
      long left = Math.max(0, end - System.nanoTime());
      if (!SignalWord.await(memory.part(i), offset, EPOCH, generation, left)) {
        return false;
      }
    }
    return true;
  }

  /// Returns whether a rank has spoiled a generation that all have released. All ranks see the
  /// same.
  boolean spoiled(int buffer, int generation) {
    return generation > 0
        && IntStream.range(0, members.place().size())
            .anyMatch(
                i -> (long) WORD.getOpaque(memory.part(i), line(buffer) + SPOILED) == generation);
  }

  /// Returns the ranks that still hold a generation, or have not cleared their parts.
  List<Integer> holders(int buffer, int generation) {
    var holders = behind(line(buffer) + RELEASED, generation);
    return holders.isEmpty() ? behind(line(buffer) + CLEAN, generation) : holders;
  }

  private List<Integer> behind(long offset, int generation) {
    return IntStream.range(0, members.place().size())
        .filter(i -> !SignalWord.reached(memory.part(i), offset, EPOCH, generation))
        .mapToObj(members.ranks()::get)
        .toList();
  }

  synchronized void close() {
    closed = true;
  }
}
