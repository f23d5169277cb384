package braid.internal.exchange;

import braid.Method;
import braid.internal.backend.Event;
import braid.internal.backend.Stream;
import braid.internal.resource.SymmetricMemory;

/// The second half of an all-reduce: every owner's sums come to every rank. The owner sends them as
/// soon as it has them, so that no rank waits for a whole; in a ring each rank sends on what has
/// come to it.
///
/// ```
/// reduce       | sum 0 |  | sum 1 |  | sum 2 |
/// comm-spread          | 0 to all |  | 1 to all |  | 2 to all |
/// finish                          | 0, of every owner | 1 ...
///                                 ^ spread 0
/// ```
public final class Spreading {
  /// What is done with sums once they are there.
  public interface Finish {
    void arrived(int chunk, Slice rows, Stream stream);
  }

  private final Rig rig;
  private final Handshake handshake;
  private final Layout layout;
  private final Rows rows;
  private final SymmetricMemory sums;
  private final Stream communication;
  private final Stream finisher;

  /// @param sums of all rows, on every rank
  public Spreading(Rig rig, Handshake handshake, Layout layout, Rows rows, SymmetricMemory sums) {
    this.rig = rig;
    this.handshake = handshake;
    this.layout = layout;
    this.rows = rows;
    this.sums = sums;
    this.communication = rig.communication("comm-spread");
    this.finisher = rig.completion("finish");
  }

  /// Sends this rank's sums of a chunk, which are there after the work that the stream has.
  public void send(int chunk, Slice own, Stream adder, Finish finish) {
    int mine = rig.place.rank();
    var there = adder.mark();
    communication.await(rig.work(chunk, () -> "the sum"), there);
    if (rig.how.method() == Method.RING) {
      if (rig.place.size() > 1) {
        send(chunk, mine, own, rig.next());
      }
    } else {
      for (int peer : rig.peers()) {
        send(chunk, mine, own, peer);
      }
    }
    finished(chunk, own, there, finish);
  }

  /// Sees to what comes from the others; after all of this rank's own was given to be sent.
  public void receive(Finish finish) {
    if (rig.how.method() == Method.RING) {
      passOn(finish);
      return;
    }
    for (int chunk = 0; chunk < layout.chunks(); chunk++) {
      for (int owner : rig.peers()) {
        var some = layout.rows(owner, chunk);
        if (some.length() > 0) {
          // Raised in [#send] on the owner.
          handshake.awaitSpread(finisher, owner, chunk, owner);
          finish.arrived(chunk, some, finisher);
        }
      }
    }
  }

  private void passOn(Finish finish) {
    for (int step = 1; step < rig.place.size(); step++) {
      int owner = rig.back(step);
      for (int chunk = 0; chunk < layout.chunks(); chunk++) {
        var some = layout.rows(owner, chunk);
        if (some.length() == 0) {
          continue;
        }
        // Raised by the rank before this one, in [#send] or here.
        handshake.awaitSpread(communication, owner, chunk, rig.previous());
        finished(chunk, some, communication.mark(), finish);
        if (step < rig.place.size() - 1) {
          send(chunk, owner, some, rig.next());
        }
      }
    }
  }

  private void finished(int chunk, Slice some, Event there, Finish finish) {
    finisher.await(rig.work(chunk, () -> "the sum"), there);
    finish.arrived(chunk, some, finisher);
  }

  private void send(int chunk, int owner, Slice some, int to) {
    handshake.awaitBegun(communication, to);
    communication.copy(
        rig.work(
            chunk, () -> "all-reduce, chunk %d of rank %d to rank %d,".formatted(chunk, owner, to)),
        rows.of(sums.on(rig.place.rank()), some),
        rows.of(sums.on(to), some));
    handshake.spread(communication, to, owner, chunk);
  }
}
