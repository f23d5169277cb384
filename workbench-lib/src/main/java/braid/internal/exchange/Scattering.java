package braid.internal.exchange;

import braid.internal.backend.Event;
import braid.internal.backend.Stream;
import braid.internal.resource.SymmetricMemory;
import braid.internal.work.Epilogue;
import braid.internal.work.Matrix;
import braid.internal.work.Reduction;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// A reduce-scatter: every rank has partial sums of all rows; each row's owner gets its sum. Each
/// rank sends: it copies its part of a sum into the owner's inbox, where every rank has its own
/// room, and the owner adds up what has come. Sums are of the ranks in ascending order, whatever
/// the method, but for the ring, which adds on the way.
public final class Scattering {
  /// What makes the partial sums.
  public interface Production {
    /// Sees to it that those rows are made, and says when they are. Rows are asked for in the order
    /// in which they are sent.
    Event make(int chunk, Slice rows);

    /// The same for all rows at once.
    Event makeAll();
  }

  /// What becomes of the sums.
  public interface Sums {
    /// Where the sum of those rows goes. Work that must be done before may be given to the stream.
    Target target(int chunk, Slice rows, Stream stream);

    /// The sum of those rows, this rank's, will be there after the work that the stream has.
    void summed(int chunk, Slice rows, Stream stream);
  }

  /// @param out of the rows asked for
  public record Target(Matrix out, Epilogue epilogue) {}

  private final Rig rig;
  private final Handshake handshake;
  private final Layout layout;
  private final Rows rows;
  private final MemorySegment partial;
  private final MemorySegment running;
  private final SymmetricMemory inbox;
  private final int room;
  private final Stream communication;
  private final Stream adder;

  /// @param layout which rows are whose
  /// @param partial this rank's partial sums of all rows
  /// @param running where a ring keeps sums of what has come and this rank's; may be `partial`
  public Scattering(
      Rig rig,
      Handshake handshake,
      Layout layout,
      Rows rows,
      MemorySegment partial,
      MemorySegment running) {
    this.rig = rig;
    this.handshake = handshake;
    this.layout = layout;
    this.rows = rows;
    this.partial = partial;
    this.running = running;
    this.room = layout.longest();
    this.inbox = rig.symmetric("inbox", rig.place.size() * rows.bytes(room));
    this.communication = rig.communication("comm");
    this.adder = rig.completion("reduce");
  }

  public Stream communication() {
    return communication;
  }

  /// The stream that adds up.
  public Stream adder() {
    return adder;
  }

  /// Lays out one reduce-scatter.
  public void layOut(Production production, Sums sums) {
    handshake.begin(communication);
    switch (rig.how.method()) {
      case PIPELINED, BULK -> pipelined(production, sums);
      case DIRECT -> direct(production, sums);
      case RING -> ring(production, sums);
      case UNFUSED -> unfused(production, sums);
    }
  }

  /// Chunk by chunk; of each, the peers' rows first.
  ///
  /// ```
  /// gemm-0  | chunk 0          | chunk 2          |
  /// gemm-1  | chunk 1                | chunk 3          |
  /// comm                | send 0 | send 1 | send 2 | send 3 |
  /// reduce                       | sum 0 |  | sum 1 | sum 2 | sum 3 |
  ///                              ^ landed 0, of every peer
  /// ```
  private void pipelined(Production production, Sums sums) {
    var peers = rig.peers();
    for (int chunk = 0; chunk < layout.chunks(); chunk++) {
      for (int peer : peers) {
        send(chunk, peer, production.make(chunk, layout.rows(peer, chunk)));
      }
      collect(chunk, production.make(chunk, layout.rows(rig.place.rank(), chunk)), sums);
    }
  }

  /// Owner by owner, this rank last: what others wait for comes first.
  ///
  /// ```
  /// gemm-0  | for r+1   | for r+2   | for r+3   | own       |
  /// comm                | send r+1  | send r+2  | send r+3  |
  /// reduce                                                  | sum |
  ///                                                         ^ landed, of every peer
  /// ```
  private void direct(Production production, Sums sums) {
    int piece = 0;
    for (int peer : rig.peers()) {
      for (int chunk = 0; chunk < layout.chunks(); chunk++) {
        send(chunk, peer, production.make(piece++, layout.rows(peer, chunk)));
      }
    }
    for (int chunk = 0; chunk < layout.chunks(); chunk++) {
      collect(chunk, production.make(piece++, layout.rows(rig.place.rank(), chunk)), sums);
    }
  }

  /// Round the ring: the sum of an owner's rows starts behind it, each rank adds its part and sends
  /// it on, and the owner comes last.
  ///
  /// ```
  /// gemm-0  | for r-1   | for r-2   | for r-3   | own       |
  /// reduce                          | add |     | add |     | add |
  /// comm                | to r+1    |     | to r+1    | to r+1    |
  ///                                 ^ landed, from r-1
  /// ```
  ///
  /// Only links between neighbours are used, and every hop rounds the sum to the type sent.
  private void ring(Production production, Sums sums) {
    int ranks = rig.place.size();
    int piece = 0;
    if (ranks > 1) {
      handshake.awaitBegun(communication, rig.next());
    }
    for (int step = 0; step < ranks; step++) {
      int owner = rig.back(step + 1);
      boolean last = step == ranks - 1;
      for (int chunk = 0; chunk < layout.chunks(); chunk++) {
        var some = layout.rows(owner, chunk);
        if (some.length() == 0) {
          continue;
        }
        var made = production.make(piece++, some);
        var parts = new ArrayList<Matrix>();
        parts.add(rows.matrix(partial, some));
        if (step > 0) {
          adder.await(rig.work(chunk, () -> "the product"), made);
          // Raised below, by the rank before this one.
          handshake.awaitLanded(adder, owner, chunk, rig.previous());
          parts.add(rows.matrix(inbox(rig.place.rank(), step - 1), packed(owner, chunk, some)));
        }
        if (last) {
          finish(chunk, some, made, parts, sums);
          continue;
        }
        var ready = made;
        if (step > 0) {
          int at = chunk;
          adder.reduce(
              rig.work(chunk, () -> "reduce-scatter, chunk %d for rank %d,".formatted(at, owner)),
              new Reduction(parts, rows.matrix(running, some), Epilogue.NONE));
          ready = adder.mark();
        }
        communication.await(rig.work(chunk, () -> "the sum to send on"), ready);
        copy(chunk, owner, step > 0 ? running : partial, some, inbox(rig.next(), step));
        handshake.landed(communication, rig.next(), owner, chunk);
      }
    }
  }

  /// All of the multiplication, then all of the communication.
  private void unfused(Production production, Sums sums) {
    var made = production.makeAll();
    for (int peer : rig.peers()) {
      send(0, peer, made);
    }
    collect(0, made, sums);
  }

  /// Sends a chunk's rows to their owner once they are made.
  private void send(int chunk, int owner, Event made) {
    var some = layout.rows(owner, chunk);
    if (some.length() == 0) {
      return;
    }
    handshake.awaitBegun(communication, owner);
    communication.await(rig.work(chunk, () -> "the product"), made);
    copy(chunk, owner, partial, some, inbox(owner, rig.place.rank()));
    handshake.landed(communication, owner, rig.place.rank(), chunk);
  }

  private void copy(int chunk, int owner, MemorySegment from, Slice some, MemorySegment to) {
    communication.copy(
        rig.work(chunk, () -> "reduce-scatter, chunk %d for rank %d,".formatted(chunk, owner)),
        rows.of(from, some),
        rows.of(to, packed(owner, chunk, some)));
  }

  /// Adds up this rank's rows of a chunk once all have come.
  private void collect(int chunk, Event made, Sums sums) {
    int mine = rig.place.rank();
    var some = layout.rows(mine, chunk);
    if (some.length() == 0) {
      return;
    }
    var parts = new ArrayList<Matrix>();
    for (int source = 0; source < rig.place.size(); source++) {
      if (source == mine) {
        parts.add(rows.matrix(partial, some));
      } else {
        // Raised in [#send] on the source.
        handshake.awaitLanded(adder, source, chunk, source);
        parts.add(rows.matrix(inbox(mine, source), packed(mine, chunk, some)));
      }
    }
    finish(chunk, some, made, parts, sums);
  }

  private void finish(int chunk, Slice some, Event made, List<Matrix> parts, Sums sums) {
    adder.await(rig.work(chunk, () -> "the product"), made);
    var target = sums.target(chunk, some, adder);
    adder.reduce(
        rig.work(chunk, () -> "reduce-scatter, sum of chunk %d,".formatted(chunk)),
        new Reduction(parts, target.out(), target.epilogue()));
    sums.summed(chunk, some, adder);
  }

  /// Room for one rank's rows in that rank's inbox.
  private MemorySegment inbox(int rank, int slot) {
    return inbox.on(rank).asSlice(slot * rows.bytes(room), rows.bytes(room));
  }

  /// Where a chunk's rows are in such a room.
  private Slice packed(int owner, int chunk, Slice some) {
    return new Slice(layout.offset(owner, chunk), some.length());
  }
}
