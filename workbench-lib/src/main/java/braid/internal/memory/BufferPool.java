package braid.internal.memory;

import braid.internal.rank.Closing;
import braid.internal.rank.Need;
import braid.internal.rank.Waits;
import braid.internal.resource.AllocationFailed;
import braid.internal.resource.BufferRequest;
import braid.internal.resource.Rendezvous;
import braid.internal.resource.SymmetricMemory;
import braid.model.BraidException;
import braid.model.MemoryKind;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Pools a group's symmetric memory: a closed buffer is kept and lent again to a request of the
/// same size and kind.
///
/// Allocation needs a rendezvous of all ranks; reuse needs none. So every decision (which buffer is
/// reused, which are freed) follows from this rank's own calls, including its closes, which are the
/// same and in the same order on all ranks. Each rank publishes its decision on the board, and no
/// buffer is lent before all ranks have published the same. If ranks request different memory, or
/// have closed buffers in a different order, the call fails on all of them.
///
/// ```
/// rank 0   close x ── take y (buffer 0 again, waits) ─────────── clean, goes on
/// rank 1   ...reads x of rank 0...   close x: the last, cleans ──┘   take y: buffer 0 again
/// ```
public final class BufferPool implements AutoCloseable {
  /// Limit of idle memory per rank; beyond it the longest idle buffers are freed. Enough for the
  /// buffers of a few pipelines, and little compared with the tensors of such machines.
  public static final long MAX_IDLE_BYTES_PER_RANK = 256L << 20;

  /// Limit of idle buffers; beyond it the longest idle are freed. Each is a mapping, of which a
  /// process has a limited number, and a notebook that tries many sizes reuses few of them.
  public static final int MAX_IDLE_BUFFERS = 64;

  /// Buffers that need less new memory per rank are granted without a meeting of the ranks: their
  /// allocation is quick, and reports by itself what does not fit.
  public static final long UNGRANTED_BYTES_PER_RANK = 64L << 20;

  /// Symmetric memory that a pool lends repeatedly. The `number` identifies it on its board and is
  /// the same on every rank; its generation counts how often it was lent.
  private record PooledBuffer(MemoryKind kind, SymmetricMemory memory, Board board, int number) {
    /// The number of a buffer for which the board has none left: it is freed when it is closed.
    static final int UNNUMBERED = -1;

    boolean fits(MemoryKind requested, long bytesPerRank) {
      return kind == requested && memory.bytesPerRank() == bytesPerRank;
    }

    void free() {
      memory.close();
    }
  }

  private final Members members;
  private final Waits waits;
  private final Calls calls;
  private final Counters counters;
  private final Supplier<? extends SymmetricMemory.Allocator> source;
  private final Supplier<Rendezvous> rendezvous;

  /// Longest idle first.
  private final Deque<PooledBuffer> idle = new ArrayDeque<>();

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

  /// Throws an [AllocationFailed] on all members if the buffers, symmetric and private, do not fit
  /// into the memory that is free on one of them. Pooled buffers are counted as they will be used:
  /// those that fit need no memory, the others are freed if it is short. All members call it
  /// together, after they have closed what they no longer use and before they allocate.
  ///
  /// @param remedy how to need less memory, for the message
  public void grant(Call call, MemoryKind kind, List<BufferRequest> buffers, String remedy) {
    var current = calls.board(call);
    var missing = missing(current, kind, buffers);
    long most = mostBytes(missing);
    calls.agree(current, call.from("%d bytes of new memory".formatted(most)));
    if (most < UNGRANTED_BYTES_PER_RANK) {
      return;
    }
    var refusal = refusal(call, kind, missing);
    if (refusal.isPresent() && freeIdle()) {
      // The memory is free only after the last rank has released it.
      var _ = exchange(call, "");
      refusal = refusal(call, kind, buffers);
    }
    if (refusal.isPresent()) {
      throw new AllocationFailed("%s: %s; %s".formatted(call.value(), refusal.get(), remedy));
    }
  }

  /// Returns the buffers that cannot be taken from the pool.
  private synchronized List<BufferRequest> missing(
      Board current, MemoryKind kind, List<BufferRequest> buffers) {
    enter(current);
    var left = new ArrayList<>(idle);
    return buffers.stream()
        .filter(
            buffer ->
                !buffer.symmetric()
                    || left.stream()
                        .filter(pooled -> pooled.fits(kind, buffer.bytes().getFirst()))
                        .findFirst()
                        .map(pooled -> !left.remove(pooled))
                        .orElse(true))
        .toList();
  }

  private long mostBytes(List<BufferRequest> buffers) {
    long most = 0;
    for (int i = 0; i < members.place().size(); i++) {
      int member = i;
      most = Math.max(most, buffers.stream().mapToLong(each -> each.bytes().get(member)).sum());
    }
    return most;
  }

  /// Returns why the buffers do not fit on some member, the same on all of them.
  private Optional<String> refusal(Call call, MemoryKind kind, List<BufferRequest> buffers) {
    var own =
        source.get().freeSpaces(kind, members.ranks()).stream()
            .flatMap(space -> space.refusal(buffers, members.ranks()).stream())
            .findFirst();
    return exchange(call, own.orElse("")).stream().filter(each -> !each.isEmpty()).findFirst();
  }

  private List<String> exchange(Call call, String value) {
    counters.add(Counter.RENDEZVOUS);
    return new AgreeingRendezvous(rendezvous.get(), members, call).exchange(call.name(), value);
  }

  /// Returns zeroed memory of `bytesPerRank` on every member. A pooled buffer is reused after all
  /// ranks have requested it and have closed its previous lease, which they wait for in shared
  /// memory; new memory takes one rendezvous. All members call it together. Closing returns the
  /// memory to the pool; memory that may still be written to is spoiled instead
  /// ([SymmetricMemory#spoil]).
  ///
  /// The call's value must contain everything that determines kind and size.
  public SymmetricMemory take(Call call, MemoryKind kind, long bytesPerRank) {
    var current = calls.board(call);
    var reused = choose(current, kind, bytesPerRank);
    agree(current, call, reused);
    for (; reused != null; reused = choose(current, kind, bytesPerRank)) {
      if (awaitReuse(reused, call)) {
        counters.add(Counter.BUFFERS_REUSED);
        return lend(reused);
      }
    }
    return lend(allocateNew(current, call, kind, bytesPerRank));
  }

  private void agree(Board current, Call call, @Nullable PooledBuffer reused) {
    try {
      calls.agree(
          current,
          call.from(
              reused == null ? "new memory " + nextNumber() : "pooled memory " + reused.number()));
    } catch (RuntimeException | Error e) {
      if (reused != null) {
        drop(reused);
      }
      throw e;
    }
  }

  /// Removes a fitting buffer from the idle ones. It takes the lowest number, not the latest, which
  /// is the same on ranks that closed several in a different order.
  private synchronized @Nullable PooledBuffer choose(
      Board current, MemoryKind kind, long bytesPerRank) {
    enter(current);
    var chosen =
        idle.stream()
            .filter(buffer -> buffer.fits(kind, bytesPerRank))
            .min(Comparator.comparingInt(PooledBuffer::number));
    chosen.ifPresent(
        buffer -> {
          idle.remove(buffer);
          idleBytes -= bytesPerRank;
        });
    return chosen.orElse(null);
  }

  private synchronized void enter(Board current) {
    if (closed) {
      throw new BraidException("the memory of group `%s` is closed".formatted(members.group()));
    }
    if (!current.equals(board)) {
      // Buffers of an earlier round: a rank that failed then may not have released them, and they
      // may still be written to.
      freeIdle();
      numbers.clear();
      board = current;
      Arrays.fill(generations, 0);
    }
  }

  /// Waits until all members have released a buffer. Returns false, and frees it, if it must not be
  /// reused.
  private boolean awaitReuse(PooledBuffer buffer, Call call) {
    var reclaimer = buffer.board().reclaimer();
    int generation = generation(buffer);
    var usable = false;
    try {
      waits.until(
          () ->
              "%s: memory that %s still holds"
                  .formatted(
                      members.in(call.name()),
                      Members.numbered(reclaimer.holders(buffer.number(), generation))),
          Need.of(
              () -> "to close memory that %s reuses".formatted(members.in(call.name())),
              () -> reclaimer.holders(buffer.number(), generation)),
          nanos ->
              reclaimer.awaitClean(buffer.number(), generation, () -> clear(buffer), nanos)
                  ? Boolean.TRUE
                  : null);
      usable = !reclaimer.spoiled(buffer.number(), generation);
      return usable;
    } finally {
      if (!usable) {
        drop(buffer);
      }
    }
  }

  /// Zeroes this rank's part: the next lease begins with zeroes.
  private void clear(PooledBuffer buffer) {
    source.get().zero(buffer.memory().on(members.place().rank()));
  }

  private PooledBuffer allocateNew(Board current, Call call, MemoryKind kind, long bytesPerRank) {
    SymmetricMemory memory;
    try {
      memory = allocate(call, kind, bytesPerRank);
    } catch (AllocationFailed e) {
      // The allocation failed on all ranks in the same exchange, and they have the same idle
      // buffers.
      if (!freeIdle()) {
        throw e;
      }
      // The memory is free only after the last rank has released it.
      var _ = new AgreeingRendezvous(rendezvous.get(), members, call).exchange(call.name(), "");
      memory = allocate(call, kind, bytesPerRank);
    }
    counters.add(Counter.BUFFERS_ALLOCATED);
    counters.add(Counter.BYTES_ALLOCATED, bytesPerRank);
    return new PooledBuffer(kind, memory, current, number());
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
      return PooledBuffer.UNNUMBERED;
    }
    numbers.set(number);
    return number;
  }

  private synchronized int generation(PooledBuffer buffer) {
    return generations[buffer.number()];
  }

  private synchronized SymmetricMemory lend(PooledBuffer buffer) {
    if (buffer.number() != PooledBuffer.UNNUMBERED) {
      generations[buffer.number()]++;
    }
    return new Lease(buffer.memory(), spoiled -> takeBack(buffer, spoiled)).memory();
  }

  private void takeBack(PooledBuffer buffer, boolean spoiled) {
    if (buffer.number() == PooledBuffer.UNNUMBERED || !calls.isCurrent(buffer.board())) {
      buffer.free();
      return;
    }
    var unusable = spoiled || isClosed();
    buffer.board().reclaimer().release(buffer.number(), generation(buffer), unusable);
    keep(buffer);
  }

  private synchronized boolean isClosed() {
    return closed;
  }

  private synchronized void keep(PooledBuffer buffer) {
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
      var oldest = idle.remove();
      idleBytes -= oldest.memory().bytesPerRank();
      drop(oldest);
    }
  }

  /// Frees a buffer; another may then take its number.
  private synchronized void drop(PooledBuffer buffer) {
    if (buffer.board().equals(board)) {
      numbers.clear(buffer.number());
    }
    buffer.free();
  }

  /// Frees all idle buffers. Returns whether there were any.
  private synchronized boolean freeIdle() {
    var freed = List.copyOf(idle);
    idle.clear();
    idleBytes = 0;
    var remaining = new ArrayDeque<>(freed);
    Closing.all(
        () -> {
          var next = remaining.poll();
          return next == null ? null : () -> drop(next);
        });
    return !freed.isEmpty();
  }

  /// Stops pooling: returned buffers are freed from now on.
  public synchronized void retire() {
    closed = true;
  }

  /// Frees the idle buffers; lent ones are freed when they are closed. May be called twice.
  @Override
  public synchronized void close() {
    closed = true;
    freeIdle();
  }
}
