package braid.internal.memory;

import braid.BraidException;
import braid.internal.resource.SymmetricMemory;
import java.util.List;
import java.util.TreeMap;
import java.util.stream.IntStream;

/// Memory by which the members of a group see each other's calls without meeting: for each a
/// [CallRing], and its share of the [Turnover] of pooled buffers. It is of one epoch; the ranks'
/// calls are numbered from its making on.
///
/// Ranks that call different things where they wait in shared memory would wait for ever, since
/// nobody sees both calls: here each sees the others'.
final class Board implements AutoCloseable {
  private final Members members;
  private final int epoch;
  private final SymmetricMemory memory;
  private final List<CallRing> rings;
  private final Turnover turnover;

  /// By member, up to which of this rank's calls it has made the same.
  private final long[] compared;

  /// The digests of this rank's latest calls, by number.
  private final long[] digests = new long[CallRing.ENTRIES];

  private long calls;
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
        new Turnover(
            members,
            IntStream.range(0, size)
                .mapToObj(i -> memory.on(i).asSlice(CallRing.BYTES, Turnover.BYTES))
                .toList());
    this.compared = new long[size];
  }

  /// What a member needs for its part.
  static long bytesPerRank() {
    return CallRing.BYTES + Turnover.BYTES;
  }

  int epoch() {
    return epoch;
  }

  Turnover turnover() {
    return turnover;
  }

  /// This rank makes that call. Throws where another has made a different one in its place.
  synchronized void enter(Call call) {
    if (closed || members.place().size() == 1) {
      return;
    }
    calls++;
    digests[slot(calls)] = call.digest();
    rings.get(members.place().rank()).write(calls, call);
    check();
  }

  /// Throws where a member has made a different call than this rank. One that has not come as far
  /// yet may still make the same.
  synchronized void check() {
    if (closed) {
      return;
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
        case OTHER -> report(number);
      }
    }
  }

  private void report(long number) {
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
    members.requireSame(said);
    throw new BraidException(
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
