package braid.internal.memory;

import braid.internal.rank.Need;
import braid.internal.rank.Waits;
import braid.internal.shared.ControlMemory;
import braid.internal.shared.SignalWord;
import braid.model.BraidException;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Memory in which the members of a group see each other's calls without a rendezvous. Each member
/// has a [CallRing], a signal for calls that wait for all others, and its part of the
/// [BufferReclaimer] of pooled buffers. A board belongs to one epoch and numbers calls from its
/// creation. Once the ranks' calls differ, it only reports the difference to all of them.
///
/// Without it, ranks that make different calls and wait in shared memory would wait forever,
/// because no rank sees both calls.
final class Board implements AutoCloseable {
  /// One cache line per member: the number of its latest call that waits for all others.
  private static final long ARRIVAL_BYTES = 64;

  private static final long ARRIVAL_OFFSET = CallRing.BYTES;
  private static final long RECLAIMER_OFFSET = ARRIVAL_OFFSET + ARRIVAL_BYTES;

  /// A constant, because the words of a board start as zeroes in every epoch.
  private static final int EPOCH = 1;

  private final Members members;
  private final int epoch;
  private final ControlMemory memory;
  private final List<CallRing> rings;
  private final BufferReclaimer reclaimer;

  /// By member, the number of this rank's latest call known to be the same.
  private final long[] agreed;

  /// Digests of this rank's latest calls, by number.
  private final long[] digests = new long[CallRing.ENTRIES];

  private long calls;

  /// Message about the calls that differ; null while none do.
  private @Nullable String difference;

  private boolean closed;

  Board(Members members, int epoch, ControlMemory memory) {
    this.members = members;
    this.epoch = epoch;
    this.memory = memory;
    int size = members.place().size();
    this.rings =
        IntStream.range(0, size)
            .mapToObj(i -> new CallRing(memory.part(i).asSlice(0, CallRing.BYTES)))
            .toList();
    this.reclaimer = new BufferReclaimer(members, memory, RECLAIMER_OFFSET);
    this.agreed = new long[size];
  }

  /// Bytes per member.
  static long bytesPerRank() {
    return RECLAIMER_OFFSET + BufferReclaimer.BYTES;
  }

  int epoch() {
    return epoch;
  }

  BufferReclaimer reclaimer() {
    return reclaimer;
  }

  /// Publishes a call of this rank. Throws if another rank made a different call at the same
  /// position. A rank whose waits are released publishes no call, because it would look wrong to
  /// ranks that are released a moment later.
  ///
  /// @return the number of the call
  synchronized long enter(Waits waits, Call call) {
    if (closed || members.place().size() == 1) {
      return calls;
    }
    waits.check(() -> members.in(call.name()));
    calls++;
    digests[slot(calls)] = call.digest();
    rings.get(members.place().rank()).write(calls, call);
    memory.publish(CallRing.offset(calls), CallRing.ENTRY_BYTES);
    check();
    return calls;
  }

  /// Publishes a call, as `enter` does, and waits until every member has made it; throws on all of
  /// them if one made a different call. So a call that takes effect after this wait does so on all
  /// ranks or on none.
  void agree(Waits waits, Call call) {
    int number = announce(waits, call);
    for (int i = 0; i < agreed.length; i++) {
      var arrival = arrival(i);
      waits.until(
          () ->
              "%s, which %s has not called"
                  .formatted(members.in(call.name()), Members.numbered(missing(number))),
          Need.of(() -> "in " + members.in(call.name()), () -> missing(number)),
          nanos -> {
            check();
            return SignalWord.await(arrival, 0, EPOCH, number, nanos) ? Boolean.TRUE : null;
          });
    }
    check();
  }

  private synchronized int announce(Waits waits, Call call) {
    int number = (int) enter(waits, call);
    memory.raise(members.place().rank(), ARRIVAL_OFFSET, EPOCH, number);
    return number;
  }

  private MemorySegment arrival(int member) {
    return memory.part(member).asSlice(ARRIVAL_OFFSET, ARRIVAL_BYTES);
  }

  private List<Integer> missing(int number) {
    return IntStream.range(0, agreed.length)
        .filter(i -> !SignalWord.reached(arrival(i), 0, EPOCH, number))
        .mapToObj(members.ranks()::get)
        .toList();
  }

  /// Returns the members that have not made this rank's latest call, as ranks of the world.
  synchronized List<Integer> absent() {
    if (closed || calls == 0) {
      return List.of();
    }
    return IntStream.range(0, agreed.length)
        .filter(member -> member != members.place().rank())
        .filter(
            member ->
                rings.get(member).compare(calls, digests[slot(calls)])
                    == CallRing.Comparison.NOT_YET)
        .mapToObj(members.ranks()::get)
        .toList();
  }

  /// Returns whether the ranks have made different calls.
  synchronized boolean differs() {
    if (!closed && difference == null) {
      try {
        check();
      } catch (BraidException e) {
        // Stored in `difference`, and thrown by the next check.
        return true;
      }
    }
    return difference != null;
  }

  /// Throws if a member has made a different call than this rank. A member that has not reached the
  /// call yet may still make the same.
  synchronized void check() {
    if (closed) {
      return;
    }
    if (difference != null) {
      throw new BraidException(difference);
    }
    for (int member = 0; member < agreed.length; member++) {
      if (member != members.place().rank()) {
        compare(member);
      }
    }
  }

  private void compare(int member) {
    // Entries that both sides have overwritten can no longer be compared.
    agreed[member] = Math.max(agreed[member], calls - CallRing.ENTRIES);
    while (agreed[member] < calls) {
      long number = agreed[member] + 1;
      switch (rings.get(member).compare(number, digests[slot(number)])) {
        case NOT_YET -> {
          return;
        }
        case EQUAL, OVERWRITTEN -> agreed[member] = number;
        case DIFFERENT -> {
          var found = different(number);
          difference = found.getMessage();
          throw found;
        }
      }
    }
  }

  private BraidException different(long number) {
    var callsByRank = new TreeMap<Integer, Call>();
    for (int member = 0; member < agreed.length; member++) {
      var ring = rings.get(member);
      if (!ring.changed(number)) {
        var call = ring.read(number);
        if (!ring.changed(number)) {
          callsByRank.put(members.ranks().get(member), call);
        }
      }
    }
    try {
      members.requireSame(callsByRank);
    } catch (BraidException named) {
      return named;
    }
    return new BraidException(
        "%s: ranks must agree but their values differ beyond the first %d bytes, of %s"
            .formatted(
                members.in(callsByRank.firstEntry().getValue().name()),
                CallRing.TEXT_BYTES,
                callsByRank.firstEntry().getValue().value()));
  }

  private static int slot(long number) {
    return (int) (number % CallRing.ENTRIES);
  }

  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      reclaimer.close();
      memory.close();
    }
  }
}
