package braid.internal.memory;

import braid.internal.rank.Waits;
import braid.internal.resource.SymmetricMemory;
import braid.internal.shared.SignalWord;
import braid.model.BraidException;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Memory by which the members of a group see each other's calls without meeting: for each a
/// [CallRing], a signal for the calls in which it waits for all others, and its share of the
/// [BufferReclaimer] of pooled buffers. It is of one epoch; the ranks' calls are numbered from its
/// making on. Once the ranks have made different calls it serves for nothing but to tell all of
/// them.
///
/// Ranks that call different things where they wait in shared memory would wait for ever, since
/// nobody sees both calls: here each sees the others'.
final class Board implements AutoCloseable {
  /// A cache line for a member's signal: the number of its latest call that waits for all others.
  private static final long COME_BYTES = 64;

  private static final long COME_OFFSET = CallRing.BYTES;
  private static final long TURNOVER_OFFSET = COME_OFFSET + COME_BYTES;

  /// Its words begin as zeroes in every epoch, so their epoch is a constant.
  private static final int EPOCH = 1;

  private final Members members;
  private final int epoch;
  private final SymmetricMemory memory;
  private final List<CallRing> rings;
  private final BufferReclaimer turnover;

  /// By member, up to which of this rank's calls it has made the same.
  private final long[] compared;

  /// The digests of this rank's latest calls, by number.
  private final long[] digests = new long[CallRing.ENTRIES];

  private long calls;

  /// Which calls differ; null as long as none do.
  private @Nullable String difference;

  private boolean closed;

  Board(Members members, int epoch, SymmetricMemory memory) {
    this.members = members;
    this.epoch = epoch;
    this.memory = memory;
    int size = members.place().size();
    this.rings =
        IntStream.range(0, size)
            .mapToObj(i -> new CallRing(memory.on(i).asSlice(0, CallRing.BYTES)))
            .toList();
    this.turnover =
        new BufferReclaimer(
            members,
            IntStream.range(0, size)
                .mapToObj(i -> memory.on(i).asSlice(TURNOVER_OFFSET, BufferReclaimer.BYTES))
                .toList());
    this.compared = new long[size];
  }

  /// What a member needs for its part.
  static long bytesPerRank() {
    return TURNOVER_OFFSET + BufferReclaimer.BYTES;
  }

  int epoch() {
    return epoch;
  }

  BufferReclaimer turnover() {
    return turnover;
  }

  /// This rank makes that call. Throws where another has made a different one in its place. A rank
  /// whose waits are released makes none: its calls would look wrong to ranks that are released a
  /// moment later.
  synchronized void enter(Waits waits, Call call) {
    if (closed || members.place().size() == 1) {
      return;
    }
    waits.check(() -> members.in(call.name()));
    calls++;
    digests[slot(calls)] = call.digest();
    rings.get(members.place().rank()).write(calls, call);
    check();
  }

  /// Waits until every member has made this rank's latest call, and throws on all of them where
  /// another made a different one. So a call that takes effect after it does so on all or on none.
  void awaitAll(Waits waits, Call call) {
    int number = announce();
    for (int i = 0; i < compared.length; i++) {
      var come = come(i);
      waits.until(
          () ->
              "%s, which %s has not called"
                  .formatted(members.in(call.name()), Members.numbered(missing(number))),
          () -> missing(number),
          nanos -> {
            check();
            return SignalWord.await(come, 0, EPOCH, number, nanos) ? Boolean.TRUE : null;
          });
    }
    check();
  }

  private synchronized int announce() {
    int number = (int) calls;
    SignalWord.raise(come(members.place().rank()), 0, EPOCH, number);
    return number;
  }

  private MemorySegment come(int member) {
    return memory.on(member).asSlice(COME_OFFSET, COME_BYTES);
  }

  private List<Integer> missing(int number) {
    return IntStream.range(0, compared.length)
        .filter(i -> !SignalWord.reached(come(i), 0, EPOCH, number))
        .mapToObj(members.ranks()::get)
        .toList();
  }

  /// Whether the ranks have made different calls.
  synchronized boolean differs() {
    if (!closed && difference == null) {
      try {
        check();
      } catch (BraidException e) {
        // Known from here on, and thrown by whatever looks next.
        return true;
      }
    }
    return difference != null;
  }

  /// Throws where a member has made a different call than this rank. One that has not come as far
  /// yet may still make the same.
  synchronized void check() {
    if (closed) {
      return;
    }
    if (difference != null) {
      throw new BraidException(difference);
    }
    for (int member = 0; member < compared.length; member++) {
      if (member != members.place().rank()) {
        compare(member);
      }
    }
  }

  private void compare(int member) {
    // What was written over on both sides can be compared no more.
    compared[member] = Math.max(compared[member], calls - CallRing.ENTRIES);
    while (compared[member] < calls) {
      long number = compared[member] + 1;
      switch (rings.get(member).compare(number, digests[slot(number)])) {
        case NOT_YET -> {
          return;
        }
        case SAME, GONE -> compared[member] = number;
        case OTHER -> {
          var found = different(number);
          difference = found.getMessage();
          throw found;
        }
      }
    }
  }

  private BraidException different(long number) {
    var said = new TreeMap<Integer, Call>();
    for (int member = 0; member < compared.length; member++) {
      var ring = rings.get(member);
      if (!ring.changed(number)) {
        var call = ring.read(number);
        if (!ring.changed(number)) {
          said.put(members.ranks().get(member), call);
        }
      }
    }
    try {
      members.requireSame(said);
    } catch (BraidException named) {
      return named;
    }
    return new BraidException(
        "%s: ranks must agree but their values differ beyond the first %d bytes, of %s"
            .formatted(
                members.in(said.firstEntry().getValue().name()),
                CallRing.TEXT_BYTES,
                said.firstEntry().getValue().value()));
  }

  private static int slot(long number) {
    return (int) (number % CallRing.ENTRIES);
  }

  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      turnover.close();
      memory.close();
    }
  }
}
