package braid.schedule.plan;

import braid.schedule.Flag;
import braid.schedule.Lane;
import braid.schedule.Program;
import braid.schedule.Schedule;
import braid.schedule.Step;

/// Signals between the ranks of a planned schedule. Each is a word of the rank that waits for it:
///
/// | flag | raised by | waited for by | meaning |
/// |---|---|---|---|
/// | begun | each rank, to the ranks that wait for it | a peer that reads its input or writes into its memory | its input of this iteration is ready; the results of the previous one are no longer needed |
/// | read | the reader, to the source | the source, at the end of the iteration | its memory is no longer read |
/// | landed, of a part and chunk | the rank that wrote or holds it | the rank that uses it next | the data has arrived |
/// | spread, of a part and chunk | the rank that wrote it | the rank that uses it next | the sum has arrived |
///
/// Every exchange keeps two rules, so that ranks that exchange data are at most one iteration
/// apart:
///
/// 1. A rank accesses a peer's memory in an iteration only after a signal that the peer raised in
///    that iteration: before it, the peer's caller or an earlier owner may still use the memory.
/// 2. A rank does not end an iteration before every peer that reads its memory has signaled that it
///    is done. A rank that writes to its peers ends after its own copies.
final class Handshake {
  private final Flag begun;
  private final Flag read;
  private final Flag landed;
  private final Flag spread;
  private final int chunks;

  /// Adds the flags of an exchange with one part per rank, in `chunks` chunks each.
  Handshake(Schedule.Builder builder, int ranks, int chunks) {
    this.chunks = chunks;
    this.begun = builder.flag("begun", ranks);
    this.read = builder.flag("read", ranks);
    this.landed = builder.flag("landed", ranks * chunks);
    this.spread = builder.flag("spread", ranks * chunks);
  }

  /// Returns the signals of one rank.
  OfRank of(Program program) {
    return new OfRank(program);
  }

  final class OfRank {
    private final Program program;

    private OfRank(Program program) {
      this.program = program;
    }

    /// Matches [#awaitBegun] on the peer.
    void begin(Lane lane, int peer) {
      program.signal(lane, Step.NO_CHUNK, begun, program.rank(), peer);
    }

    /// Matches [#begin] on the peer.
    void awaitBegun(Lane lane, int peer) {
      program.await(lane, Step.NO_CHUNK, begun, peer, peer);
    }

    /// Matches [#awaitRead] on the peer.
    void read(Lane lane, int source) {
      program.signal(lane, Step.NO_CHUNK, read, program.rank(), source);
    }

    /// Matches [#read] on the peer.
    void awaitRead(Lane lane, int reader) {
      program.await(lane, Step.NO_CHUNK, read, reader, reader);
    }

    /// Matches [#awaitLanded] on the peer.
    void landed(Lane lane, int to, int part, int chunk) {
      program.signal(lane, chunk, landed, part * chunks + chunk, to);
    }

    /// Matches [#landed] on `from`, the rank that held or wrote the data.
    void awaitLanded(Lane lane, int part, int chunk, int from) {
      program.await(lane, chunk, landed, part * chunks + chunk, from);
    }

    /// Matches [#awaitSpread] on the peer.
    void spread(Lane lane, int to, int part, int chunk) {
      program.signal(lane, chunk, spread, part * chunks + chunk, to);
    }

    /// Matches [#spread] on `from`, the rank that wrote the sum.
    void awaitSpread(Lane lane, int part, int chunk, int from) {
      program.await(lane, chunk, spread, part * chunks + chunk, from);
    }
  }
}
