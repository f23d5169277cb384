package braid.internal.exchange;

import braid.internal.backend.Signals;
import braid.internal.backend.Stream;
import java.util.function.Supplier;

/// The signals between the ranks of an exchange. Each is a word of the rank that waits for it, and
/// carries the step, so none is ever taken back:
///
/// | signal | raised by | waited for by | says |
/// |---|---|---|---|
/// | begun | each rank, to all others | whoever reads its input or writes into its memory | its input of this step is written; what the last step left there is no longer needed |
/// | read | the reader, to the source | the source, at the end of the step | its memory is needed no more |
/// | landed, of a part and chunk | the rank that wrote it or has it | the rank that goes on with it | it is there |
/// | spread, of a part and chunk | the rank that wrote it | the rank that goes on with it | the sum is there |
///
/// Completion within a rank uses events.
///
/// Iterations may be in flight, so nothing may rest on the host synchronizing between them. Within
/// a rank the streams are joined at the end of an iteration. Between ranks, every exchange keeps
/// two rules, which hold two ranks that exchange data at most one iteration apart:
///
/// 1. A rank touches a peer's memory in a step only behind a signal that the peer raised in that
///    step, and the peer raised it behind the join of the step before. Gathers: `begun`, in a ring
///    `landed` for what the neighbor gathered. Scatters and spreads: `begun`. One shot: `landed`.
/// 2. A rank does not end a step before every peer that reads its memory has signaled that it is
///    done: `read` for gathers and one shot. A scatter or spread is read by its own sender, whose
///    step ends behind its copies, so it needs none.
///
/// It follows for every word that its raiser does not raise it for the step after the next before
/// its waiter has passed the next: in every step each rank waits for some signal from each rank
/// that waits for it, raised behind that wait (`read` answers `begun` and `landed` of gathers,
/// `landed` or `spread` answers `begun` of scatters and spreads, and the next `begun` answers
/// `read`, `landed` and `spread`).
public final class Handshake {
  private static final String BEGUN = "begun";
  private static final String READ = "read";
  private static final String LANDED = "landed";
  private static final String SPREAD = "spread";

  private final Rig rig;
  private final Signals signals;
  private final int chunks;

  /// Signals for as many parts as there are ranks, in that many chunks.
  public Handshake(Rig rig, int chunks) {
    this.rig = rig;
    this.chunks = chunks;
    int ranks = rig.place.size();
    int words = 2 * ranks + 2 * ranks * chunks;
    this.signals =
        new Signals(
            rig.symmetric("signals", Signals.bytes(words)), rig.ranks, rig.place.rank(), words);
  }

  /// Matches [#awaitBegun] on every other rank.
  public void begin(Stream stream) {
    for (int peer : rig.peers()) {
      raise(stream, BEGUN, peer, rig.place.rank());
    }
  }

  /// Matches [#begin] on that rank.
  public void awaitBegun(Stream stream, int peer) {
    await(stream, () -> BEGUN + " from rank " + peer, peer, peer);
  }

  /// Matches [#awaitRead] on that rank.
  void read(Stream stream, int source) {
    raise(stream, READ, source, rig.place.size() + rig.place.rank());
  }

  /// Matches [#read] on that rank.
  void awaitRead(Stream stream, int reader) {
    await(stream, () -> READ + " from rank " + reader, rig.place.size() + reader, reader);
  }

  /// Matches [#awaitLanded] on that rank.
  void landed(Stream stream, int to, int part, int chunk) {
    raise(stream, LANDED, to, landedSlot(part, chunk));
  }

  /// Matches [#landed] on `from`, the rank that had or wrote it.
  void awaitLanded(Stream stream, int part, int chunk, int from) {
    await(stream, () -> described(LANDED, part, chunk), landedSlot(part, chunk), from);
  }

  /// Matches [#awaitSpread] on that rank.
  void spread(Stream stream, int to, int part, int chunk) {
    raise(stream, SPREAD, to, spreadSlot(part, chunk));
  }

  /// Matches [#spread] on `from`, the rank that wrote it.
  void awaitSpread(Stream stream, int part, int chunk, int from) {
    await(stream, () -> described(SPREAD, part, chunk), spreadSlot(part, chunk), from);
  }

  private static String described(String signal, int part, int chunk) {
    return "%s of rank %d's chunk %d".formatted(signal, part, chunk);
  }

  private int landedSlot(int part, int chunk) {
    return 2 * rig.place.size() + part * chunks + chunk;
  }

  private int spreadSlot(int part, int chunk) {
    return landedSlot(part, chunk) + rig.place.size() * chunks;
  }

  private void raise(Stream stream, String signal, int to, int slot) {
    stream.raise(rig.work(() -> "signal %s to rank %d".formatted(signal, to)), signals, to, slot);
  }

  private void await(Stream stream, Supplier<String> signal, int slot, int from) {
    stream.await(rig.work(() -> "signal " + signal.get()), signals, slot, from);
  }
}
