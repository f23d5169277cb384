package braid.internal.exchange;

import braid.internal.backend.Copy;
import braid.internal.backend.Event;
import braid.internal.backend.Stream;
import braid.internal.resource.SymmetricMemory;
import braid.internal.work.Matrix;
import braid.internal.work.Reduction;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;

/// An all-reduce in one step: every rank fetches all others' partial sums and adds up all rows
/// itself. It moves more bytes than reduce-scatter and all-gather, and waits only once.
///
/// ```
/// gemm-0  | chunk 0        | chunk 1        |
/// comm                     | chunk 0 of r+1 | of r+2 | chunk 1 of r+1 | of r+2 |
/// reduce                                             | sum 0 |                 | sum 1 |
///                          ^ landed 0, on the rank that made it
/// ```
public final class OneShot {
  private final Rig rig;
  private final Handshake handshake;
  private final Layout layout;
  private final Rows rows;
  private final SymmetricMemory partials;
  private final MemorySegment inbox;
  private final int total;
  private final Stream announcer;
  private final Stream communication;
  private final Stream adder;

  /// @param layout of one part, that has all rows
  /// @param partials every rank's partial sums of all rows
  public OneShot(Rig rig, Handshake handshake, Layout layout, Rows rows, SymmetricMemory partials) {
    this.rig = rig;
    this.handshake = handshake;
    this.layout = layout;
    this.rows = rows;
    this.partials = partials;
    this.total = layout.longest();
    this.inbox = rig.memory(rig.place.size() * rows.bytes(total));
    this.announcer = rig.completion("announce");
    this.communication = rig.communication("comm");
    this.adder = rig.completion("reduce");
  }

  /// Lays out one all-reduce.
  public void layOut(Scattering.Production production, Scattering.Sums sums) {
    var made = new ArrayList<Event>();
    for (int chunk = 0; chunk < layout.chunks(); chunk++) {
      made.add(production.make(chunk, layout.rows(0, chunk)));
    }
    for (int chunk = 0; chunk < layout.chunks(); chunk++) {
      announce(chunk, made.get(chunk));
      fetch(chunk);
      collect(chunk, made.get(chunk), sums);
    }
    rig.peers().forEach(peer -> handshake.read(communication, peer));
    rig.peers().forEach(peer -> handshake.awaitRead(communication, peer));
  }

  /// Tells the peers that they may fetch the chunk.
  private void announce(int chunk, Event made) {
    announcer.await(rig.work(chunk, () -> "the product"), made);
    for (int peer : rig.peers()) {
      // Matches the wait in [#fetch] on the peer.
      handshake.landed(announcer, peer, rig.place.rank(), chunk);
    }
  }

  private void fetch(int chunk) {
    var some = layout.rows(0, chunk);
    var copies = new ArrayList<Copy>();
    for (int source : rig.peers()) {
      // Matches the signal in [#announce] on the source.
      handshake.awaitLanded(communication, source, chunk, source);
      copies.add(
          new Copy(
              rig.work(chunk, () -> "all-reduce, chunk %d of rank %d,".formatted(chunk, source)),
              rows.of(partials.on(source), some),
              rows.of(inbox(source), some)));
    }
    communication.copyAll(rig.work(chunk, () -> "all-reduce, chunk %d,".formatted(chunk)), copies);
  }

  private void collect(int chunk, Event made, Scattering.Sums sums) {
    var some = layout.rows(0, chunk);
    var parts = new ArrayList<Matrix>();
    for (int source = 0; source < rig.place.size(); source++) {
      var from = source == rig.place.rank() ? partials.on(source) : inbox(source);
      parts.add(rows.matrix(from, some));
    }
    adder.await(rig.work(chunk, () -> "the product"), made);
    adder.await(rig.work(chunk, () -> "the others' products"), communication.mark());
    var target = sums.target(chunk, some, adder);
    adder.reduce(
        rig.work(chunk, () -> "all-reduce, sum of chunk %d,".formatted(chunk)),
        new Reduction(parts, target.out(), target.epilogue()));
    sums.summed(chunk, some, adder);
  }

  private MemorySegment inbox(int source) {
    return inbox.asSlice(source * rows.bytes(total), rows.bytes(total));
  }
}
