package braid.internal.memory;

import braid.internal.rank.Closing;
import braid.internal.rank.Waits;
import braid.internal.resource.AllocationFailed;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import braid.model.BraidException;
import braid.model.MemoryKind;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A group's symmetric memory, which is kept when it is closed and handed out again to whoever asks
/// for as many bytes of the same kind.
///
/// Making memory costs a meeting of all ranks; using it again costs none. So every decision (is
/// there a buffer to use again, which, what is freed) follows from this rank's own calls, which are
/// the same in the same order on all ranks: that includes closing. Each rank says on the board what
/// it decided, and nothing is handed out before all have said the same: ranks that ask for
/// different memory, or closed in another order, are told, all of them.
///
/// ```
/// rank 0   close x ── take y (buffer 0 again, waits) ─────────── clean, goes on
/// rank 1   ...reads x of rank 0...   close x: the last, cleans ──┘   take y: buffer 0 again
/// ```
public final class BufferPool implements AutoCloseable {
  /// Idle memory beyond that is freed, the longest idle first. It is a rank's part: room for the
  /// buffers of a few pipelines, and little beside the tensors that such machines are used for.
  public static final long MAX_IDLE_BYTES_PER_RANK = 256L << 20;

  /// Idle buffers beyond that are freed likewise: each is a mapping, of which a process may not
  /// have many, and a notebook that tries many sizes asks for few of them again.
  public static final int MAX_IDLE_BUFFERS = 64;

  private final Members members;
  private final Waits waits;
  private final Calls calls;
  private final Counters counters;
  private final Supplier<? extends SymmetricMemory.Allocator> source;
  private final Supplier<Rendezvous> rendezvous;

  /// The longest idle first.
  private final Deque<Buffer> idle = new ArrayDeque<>();

  private final BitSet numbers = new BitSet();
  private final int[] generations = new int[BufferReclaimer.BUFFERS];
  private long idleBytes;
  private @Nullable Board board;
  private boolean closed;

  public BufferPool(
      Members members,
      Waits waits,
      Calls calls,
      Counters counters,
      Supplier<? extends SymmetricMemory.Allocator> source,
      Supplier<Rendezvous> rendezvous) {
    this.members = members;
    this.waits = waits;
    this.calls = calls;
    this.counters = counters;
    this.source = source;
    this.rendezvous = rendezvous;
  }

  /// Memory of that many bytes on every member, all zero: from the pool, where ranks wait until all
  /// have asked and have closed it, in shared memory, or new, where all meet once. All members call
  /// it together. Closing it gives it back; what may still be written to is spoiled instead
  /// ([SymmetricMemory#spoil]).
  ///
  /// The call's value must say all that decides about kind and size.
  public SymmetricMemory take(Call call, MemoryKind kind, long bytesPerRank) {
    var current = calls.board(call);
    var kept = choose(current, kind, bytesPerRank);
    agree(current, call, kept);
    for (; kept != null; kept = choose(current, kind, bytesPerRank)) {
      if (turnedOver(kept, call)) {
        counters.add(Counter.BUFFERS_REUSED);
        return lend(kept);
      }
    }
    return lend(make(current, call, kind, bytesPerRank));
  }

  private void agree(Board current, Call call, @Nullable Buffer kept) {
    try {
      calls.agree(
          current,
          call.from(
              kept == null
                  ? "new memory " + nextNumber()
                  : "memory " + kept.number() + " once more"));
    } catch (RuntimeException | Error e) {
      if (kept != null) {
        drop(kept);
      }
      throw e;
    }
  }

  /// Takes a buffer that fits out of the idle ones. It is the lowest number, not the latest, since
  /// that is the same also where ranks closed several in another order.
  private synchronized @Nullable Buffer choose(Board current, MemoryKind kind, long bytesPerRank) {
    if (closed) {
      throw new BraidException("the memory of group `%s` is closed".formatted(members.group()));
    }
    if (!current.equals(board)) {
      // Of an earlier round: who broke off then may not have let go, and may still be written to.
      freeIdle();
      numbers.clear();
      board = current;
      Arrays.fill(generations, 0);
    }
    var chosen =
        idle.stream()
            .filter(buffer -> buffer.fits(kind, bytesPerRank))
            .min(Comparator.comparingInt(Buffer::number));
    chosen.ifPresent(
        buffer -> {
          idle.remove(buffer);
          idleBytes -= bytesPerRank;
        });
    return chosen.orElse(null);
  }

  /// Waits until all members have let go of it. False, and it is freed, where it must not be used
  /// again.
  private boolean turnedOver(Buffer buffer, Call call) {
    var turnover = buffer.board().turnover();
    int generation = generation(buffer);
    var usable = false;
    try {
      waits.until(
          () ->
              "%s: memory that %s still holds"
                  .formatted(
                      members.in(call.name()),
                      Members.numbered(turnover.holders(buffer.number(), generation))),
          () -> turnover.holders(buffer.number(), generation),
          nanos -> turnover.over(buffer.number(), generation, nanos) ? Boolean.TRUE : null);
      usable = !turnover.spoiled(buffer.number(), generation);
      return usable;
    } finally {
      if (!usable) {
        drop(buffer);
      }
    }
  }

  private Buffer make(Board current, Call call, MemoryKind kind, long bytesPerRank) {
    SymmetricMemory memory;
    try {
      memory = allocate(call, kind, bytesPerRank);
    } catch (AllocationFailed e) {
      // All ranks were told so in the same exchange, and have the same idle buffers.
      if (!freeIdle()) {
        throw e;
      }
      // Memory is free only when the last rank has let go of it.
      var _ = new AgreeingRendezvous(rendezvous.get(), members, call).exchange(call.name(), "");
      memory = allocate(call, kind, bytesPerRank);
    }
    counters.add(Counter.BUFFERS_ALLOCATED);
    counters.add(Counter.BYTES_ALLOCATED, bytesPerRank);
    return new Buffer(kind, memory, current, number());
  }

  private SymmetricMemory allocate(Call call, MemoryKind kind, long bytesPerRank) {
    counters.add(Counter.RENDEZVOUS);
    return source
        .get()
        .allocate(
            kind,
            call.toString(),
            bytesPerRank,
            new AgreeingRendezvous(rendezvous.get(), members, call));
  }

  private synchronized int nextNumber() {
    return numbers.nextClearBit(0);
  }

  private synchronized int number() {
    int number = nextNumber();
    if (number >= BufferReclaimer.BUFFERS) {
      return Buffer.UNNUMBERED;
    }
    numbers.set(number);
    return number;
  }

  private synchronized int generation(Buffer buffer) {
    return generations[buffer.number()];
  }

  private synchronized SymmetricMemory lend(Buffer buffer) {
    if (buffer.number() != Buffer.UNNUMBERED) {
      generations[buffer.number()]++;
    }
    return new Lease(buffer.memory(), spoiled -> giveBack(buffer, spoiled)).memory();
  }

  private void giveBack(Buffer buffer, boolean spoiled) {
    if (buffer.number() == Buffer.UNNUMBERED || !calls.isCurrent(buffer.board())) {
      buffer.free();
      return;
    }
    var unusable = spoiled || isClosed();
    buffer
        .board()
        .turnover()
        .letGo(
            buffer.number(),
            generation(buffer),
            unusable,
            () -> source.get().zero(buffer.memory()));
    keep(buffer);
  }

  private synchronized boolean isClosed() {
    return closed;
  }

  private synchronized void keep(Buffer buffer) {
    if (closed || !buffer.board().equals(board)) {
      buffer.free();
      return;
    }
    if (buffer.memory().bytesPerRank() > MAX_IDLE_BYTES_PER_RANK) {
      drop(buffer);
      return;
    }
    idle.add(buffer);
    idleBytes += buffer.memory().bytesPerRank();
    while (idleBytes > MAX_IDLE_BYTES_PER_RANK || idle.size() > MAX_IDLE_BUFFERS) {
      var longest = idle.remove();
      idleBytes -= longest.memory().bytesPerRank();
      drop(longest);
    }
  }

  /// Frees a buffer whose number another may then have.
  private synchronized void drop(Buffer buffer) {
    if (buffer.board().equals(board)) {
      numbers.clear(buffer.number());
    }
    buffer.free();
  }

  /// Says whether there were any.
  private synchronized boolean freeIdle() {
    var freed = List.copyOf(idle);
    idle.clear();
    idleBytes = 0;
    var left = new ArrayDeque<>(freed);
    Closing.all(
        () -> {
          var next = left.poll();
          return next == null ? null : () -> drop(next);
        });
    return !freed.isEmpty();
  }

  /// From here on nothing is kept: what is given back is freed.
  public synchronized void retire() {
    closed = true;
  }

  /// Frees what is idle; what is still lent is freed when it is closed. Twice is harmless.
  @Override
  public synchronized void close() {
    closed = true;
    freeIdle();
  }
}
