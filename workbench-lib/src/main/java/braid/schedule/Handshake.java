package braid.schedule;

/// The signals between the ranks of a planned schedule. Each is a word of the rank that waits for
/// it:
///
/// | flag | raised by | waited for by | means |
/// |---|---|---|---|
/// | begun | each rank, to the ranks that wait for it | a peer that reads its input or writes into its memory | its input of this iteration is written; the results of the last one are no longer needed |
/// | read | the reader, to the source | the source, at the end of the iteration | its memory is needed no more |
/// | landed, of a part and chunk | the rank that wrote it or has it | the rank that goes on with it | it is there |
/// | spread, of a part and chunk | the rank that wrote it | the rank that goes on with it | the sum is there |
///
/// Every exchange keeps two rules, which hold two ranks that exchange data at most one iteration
/// apart:
///
/// 1. A rank touches a peer's memory in an iteration only behind a signal that the peer raised in
///    it: before, the memory may still be in use by the peer's caller, or by an earlier owner.
/// 2. A rank does not end an iteration before every peer that reads its memory has signaled that it
///    is done. A rank that writes to its peers ends behind its own copies.
final class Handshake {
  private final Flag begun;
  private final Flag read;
  private final Flag landed;
  private final Flag spread;
  private final int chunks;

  /// The flags of an exchange of as many parts as there are ranks, in that many chunks.
  Handshake(Schedule.Builder builder, int ranks, int chunks) {
    this.chunks = chunks;
    this.begun = builder.flag("begun", ranks);
    this.read = builder.flag("read", ranks);
    this.landed = builder.flag("landed", ranks * chunks);
    this.spread = builder.flag("spread", ranks * chunks);
  }

  /// The signals of one rank.
  OfRank of(Program program) {
    return new OfRank(program);
  }

  final class OfRank {
    private final Program program;

    private OfRank(Program program) {
      this.program = program;
    }

    /// Matches [#awaitBegun] on that rank.
    void begin(Lane lane, int peer) {
      program.signal(lane, Step.NO_CHUNK, begun, program.rank(), peer);
    }

    /// Matches [#begin] on that rank.
    void awaitBegun(Lane lane, int peer) {
      program.await(lane, Step.NO_CHUNK, begun, peer, peer);
    }

    /// Matches [#awaitRead] on that rank.
    void read(Lane lane, int source) {
      program.signal(lane, Step.NO_CHUNK, read, program.rank(), source);
    }

    /// Matches [#read] on that rank.
    void awaitRead(Lane lane, int reader) {
      program.await(lane, Step.NO_CHUNK, read, reader, reader);
    }

    /// Matches [#awaitLanded] on that rank.
    void landed(Lane lane, int to, int part, int chunk) {
      program.signal(lane, chunk, landed, part * chunks + chunk, to);
    }

    /// Matches [#landed] on `from`, the rank that had or wrote it.
    void awaitLanded(Lane lane, int part, int chunk, int from) {
      program.await(lane, chunk, landed, part * chunks + chunk, from);
    }

    /// Matches [#awaitSpread] on that rank.
    void spread(Lane lane, int to, int part, int chunk) {
      program.signal(lane, chunk, spread, part * chunks + chunk, to);
    }

    /// Matches [#spread] on `from`, the rank that wrote it.
    void awaitSpread(Lane lane, int part, int chunk, int from) {
      program.await(lane, chunk, spread, part * chunks + chunk, from);
    }
  }
}
