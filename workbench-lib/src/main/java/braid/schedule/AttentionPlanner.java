package braid.schedule;

import braid.model.AttentionSpec;
import braid.model.ChunkOrder;
import braid.model.ContextParallel;
import braid.model.ContextParallel.Method;
import braid.model.DType;
import braid.model.Transport;
import braid.schedule.Buffer.Shape;
import braid.schedule.Step.Move;
import braid.schedule.Step.Partial;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;

/// Plans attention over a divided sequence. Every rank fetches, from their owners, the keys and
/// values that its queries see, and computes with them as they arrive. Its own keys and values are
/// used in place. Positions that no query of a rank sees are not fetched.
///
/// The result is accumulated block by block, in fp32. Each computing lane has its own partial
/// result; those of the other lanes are merged into that of the first at the end.
final class AttentionPlanner {
  private final AttentionSpec spec;
  private final ContextParallel how;
  private final int ranks;
  private final Schedule.Builder builder;
  private final Handshake handshake;
  private final Buffer query;
  private final Buffer key;
  private final Buffer value;
  private final Buffer output;
  private final Buffer lse;

  /// Partial results of the lanes.
  private final List<Buffer> outputs = new ArrayList<>();

  private final List<Buffer> statistics = new ArrayList<>();

  /// Memory for fetched keys and values: one buffer per chunk in flight in a ring, or one for all.
  private final List<Buffer> keys = new ArrayList<>();

  private final List<Buffer> values = new ArrayList<>();
  private final Lane comm;
  private final List<Lane> lanes;

  /// Positions of one owner that a rank fetches together.
  record Piece(int source, Tokens.Run run, Slice positions) {
    /// Returns the rows of a piece, if all pieces are one after another.
    Slice among(List<Piece> all) {
      long row = all.stream().takeWhile(each -> !each.equals(this)).mapToLong(Piece::length).sum();
      return new Slice(row, length());
    }

    long length() {
      return positions.length();
    }
  }

  AttentionPlanner(AttentionSpec spec, ContextParallel how, int ranks) {
    this.spec = spec;
    this.how = how;
    this.ranks = ranks;
    this.builder = Schedule.on(new Goal.Attention(spec, how), ranks);
    this.handshake = new Handshake(builder, ranks, 1);
    query = builder.local(Part.QUERY);
    key = builder.symmetric(Part.KEY);
    value = builder.symmetric(Part.VALUE);
    output = builder.local(Part.OUTPUT);
    lse = builder.local(Part.LSE);
    for (int lane = 0; lane < how.streams(); lane++) {
      boolean direct = lane == 0 && spec.dtype() == DType.FP32;
      outputs.add(direct ? output : partial("output " + lane, output));
      statistics.add(lane == 0 ? lse : partial("lse " + lane, lse));
    }
    int slots = how.method() == Method.RING ? how.streams() + 1 : 1;
    var rows = IntStream.range(0, ranks).mapToObj(this::fetchedRows).toList();
    for (int slot = 0; slot < slots; slot++) {
      keys.add(fetched("fetched key " + slot, key, rows));
      values.add(fetched("fetched value " + slot, value, rows));
    }
    comm = communicationLane(builder, "comm", how);
    lanes = attentionLanes(builder, how);
  }

  static Lane communicationLane(Schedule.Builder builder, String name, ContextParallel how) {
    return builder.add(
        new Lane(name, Lane.Role.COMMUNICATION, false, how.transport(), how.workers(), 0));
  }

  static List<Lane> attentionLanes(Schedule.Builder builder, ContextParallel how) {
    return IntStream.range(0, how.streams())
        .mapToObj(
            lane ->
                builder.add(
                    new Lane(
                        "attend-" + lane,
                        Lane.Role.COMPUTE,
                        true,
                        Transport.COPY_ENGINE,
                        0,
                        how.workers())))
        .toList();
  }

  Schedule plan() {
    return builder.steps(program -> new OfRank(program).write());
  }

  private Buffer partial(String name, Buffer like) {
    return builder.add(new Buffer(name, DType.FP32, like.shapes(), false, false));
  }

  /// @param rows number of rows, by rank
  private Buffer fetched(String name, Buffer like, List<Long> rows) {
    return builder.add(
        new Buffer(
            name,
            like.dtype(),
            Schedule.Builder.shapes(ranks, rank -> new Shape(rows.get(rank), like.columns(rank))),
            false,
            false));
  }

  /// Returns the rows that hold any chunk of a ring, or the whole sequence.
  long fetchedRows(int rank) {
    if (how.method() != Method.RING) {
      return units(rank).isEmpty() ? 0 : spec.sequence();
    }
    return units(rank).stream()
        .mapToLong(unit -> unit.stream().mapToLong(Piece::length).sum())
        .max()
        .orElse(0);
  }

  private Tokens tokens(int rank) {
    return Tokens.of(spec, ranks, rank);
  }

  /// Returns the pieces that a rank fetches, unit by unit: a chunk of one rank in a ring, a chunk
  /// of all ranks otherwise.
  List<List<Piece>> units(int rank) {
    var units = new ArrayList<List<Piece>>();
    var sources = new Neighbors(rank, ranks, ChunkOrder.PREVIOUS_FIRST).peers();
    if (how.method() == Method.RING) {
      for (int source : sources) {
        for (int chunk = 0; chunk < how.splits(); chunk++) {
          units.add(pieces(rank, source, chunk));
        }
      }
    } else {
      for (int chunk = 0; chunk < how.splits(); chunk++) {
        var unit = new ArrayList<Piece>();
        for (int source : sources) {
          unit.addAll(pieces(rank, source, chunk));
        }
        units.add(unit);
      }
    }
    units.removeIf(List::isEmpty);
    return units;
  }

  /// Returns the pieces of a chunk of a source that a rank's queries see.
  List<Piece> pieces(int rank, int source, int chunk) {
    var pieces = new ArrayList<Piece>();
    for (var run : tokens(source).runs()) {
      for (var needed : tokens(rank).seen(spec, run.positions())) {
        var positions = needed.part(how.splits(), chunk);
        if (!positions.isEmpty()) {
          pieces.add(new Piece(source, run, positions));
        }
      }
    }
    return pieces;
  }

  boolean fetches(int rank, int source) {
    return tokens(source).runs().stream()
        .anyMatch(run -> !tokens(rank).seen(spec, run.positions()).isEmpty());
  }

  /// Returns the rows of a piece in the buffer that it is fetched into: by position if that holds
  /// the sequence, else behind the pieces before it.
  Slice fetchedRows(List<Piece> unit, Piece piece) {
    return how.method() == Method.RING ? piece.among(unit) : piece.positions();
  }

  /// Returns the fetched pieces of a unit, joined where positions and rows are consecutive.
  List<Tokens.Run> blocks(List<Piece> unit) {
    var blocks = new ArrayList<Tokens.Run>();
    var pieces =
        unit.stream()
            .map(piece -> new Tokens.Run(fetchedRows(unit, piece).start(), piece.positions()))
            .sorted(Comparator.comparingLong(Tokens.Run::row))
            .toList();
    for (var piece : pieces) {
      var block = piece;
      if (!blocks.isEmpty() && blocks.getLast().isBefore(piece)) {
        var before = blocks.removeLast();
        block =
            new Tokens.Run(
                before.row(),
                new Slice(
                    before.positions().start(),
                    before.positions().length() + piece.positions().length()));
      }
      blocks.add(block);
    }
    return blocks;
  }

  /// The steps of one rank.
  private final class OfRank {
    private final Program program;
    private final int rank;
    private final Tokens tokens;
    private final Handshake.OfRank signals;
    private final List<List<Piece>> units;

    /// Runs of queries that each lane has begun a partial result of.
    private final List<Set<Tokens.Run>> begun = new ArrayList<>();

    OfRank(Program program) {
      this.program = program;
      this.rank = program.rank();
      this.tokens = tokens(rank);
      this.signals = handshake.of(program);
      this.units = units(rank);
      lanes.forEach(_ -> begun.add(new HashSet<>()));
    }

    /// A ring: while a chunk is attended to, the next is fetched into the other of two buffers.
    ///
    /// Rank 3 of 4, `causalAttention`, `ring()`:
    ///
    /// ```
    /// comm      | fetch 1 @2 > fetch 2 @1 > fetch 3 @0 >
    ///           ^ begun @2   ^ begun @1   ^ begun @0
    /// attend-0  | attend own | attend 1   | attend 2   | attend 3 |
    /// ```
    ///
    /// An all-gather in chunks, each from all ranks.
    ///
    /// Rank 3 of 4, `causalAttention`, `allGatherKv(2)`:
    ///
    /// ```
    /// comm      | fetch 1    | fetch 2  >
    ///           ^ begun @all
    /// attend-0  | attend own | attend 1 | attend 1 | attend 1 | attend 2 | attend 2 | attend 2 |
    /// ```
    ///
    /// First all communication, then all computation.
    ///
    /// Rank 3 of 4, `causalAttention`, `unfused()`:
    ///
    /// ```
    /// comm      | fetch 1 >
    ///           ^ begun @all
    /// attend-0            | attend own | attend 1 |
    /// ```
    void write() {
      var peers = new Neighbors(rank, ranks, ChunkOrder.NEXT_FIRST).peers();
      var readers = peers.stream().filter(peer -> fetches(peer, rank)).toList();
      readers.forEach(reader -> signals.begin(comm, reader));
      if (how.method() == Method.UNFUSED) {
        for (int unit = 0; unit < units.size(); unit++) {
          fetch(unit);
        }
        if (!units.isEmpty()) {
          program.after(lanes.getFirst(), Step.NO_CHUNK, comm);
        }
        attendOwn();
        for (int unit = 0; unit < units.size(); unit++) {
          attend(unit);
        }
      } else {
        attendOwn();
        var done = new int[units.size()];
        for (int unit = 0; unit < units.size(); unit++) {
          int before = unit - keys.size();
          if (how.method() == Method.RING && before >= 0) {
            program.after(comm, unit + 1, done[before]);
          }
          fetch(unit);
          var lane = lane(unit);
          program.after(lane, unit + 1, program.mark(comm, unit + 1));
          attend(unit);
          done[unit] = program.mark(lane, unit + 1);
        }
      }
      merge();
      readers.forEach(reader -> signals.awaitRead(comm, reader));
    }

    private Lane lane(int unit) {
      return lanes.get((unit + 1) % lanes.size());
    }

    private void fetch(int unit) {
      var moves = new ArrayList<Move>();
      var sources = new HashSet<Integer>();
      for (var piece : units.get(unit)) {
        signals.awaitBegun(comm, piece.source());
        sources.add(piece.source());
        var from = piece.run().rows(piece.positions());
        var to = fetchedRows(units.get(unit), piece);
        moves.add(new Move(key.on(piece.source(), from), keys.get(slot(unit)).on(rank, to)));
        moves.add(new Move(value.on(piece.source(), from), values.get(slot(unit)).on(rank, to)));
      }
      program.copy(comm, unit + 1, moves);
      // Each source learns of the last unit that reads its memory.
      units
          .subList(unit + 1, units.size())
          .forEach(later -> later.forEach(piece -> sources.remove(piece.source())));
      sources.stream().sorted().forEach(source -> signals.read(comm, source));
    }

    private int slot(int unit) {
      return unit % keys.size();
    }

    private void attendOwn() {
      for (var own : tokens.runs()) {
        attend(
            lanes.getFirst(),
            0,
            own.positions(),
            key.on(rank, own.rows()),
            value.on(rank, own.rows()));
      }
    }

    private void attend(int unit) {
      for (var block : blocks(units.get(unit))) {
        attend(
            lane(unit),
            unit + 1,
            block.positions(),
            keys.get(slot(unit)).on(rank, block.rows()),
            values.get(slot(unit)).on(rank, block.rows()));
      }
    }

    /// Computes the attention of all queries that see any of the positions.
    private void attend(Lane lane, int chunk, Slice positions, Region key, Region value) {
      int number = lanes.indexOf(lane);
      for (var queries : tokens.runs()) {
        var seen = Tokens.seen(spec, queries, positions);
        if (seen.isEmpty() && queries.positions().equals(positions)) {
          // All of them are padding: their result is begun, and stays empty.
          seen = positions;
        }
        if (!seen.isEmpty()) {
          long skipped = seen.start() - positions.start();
          var rows = new Slice(skipped, seen.length());
          program.attend(
              lane,
              chunk,
              spec,
              query.on(rank, queries.rows()),
              queries.positions().start(),
              key.buffer().on(rank, rows.shifted(key.row())),
              value.buffer().on(rank, rows.shifted(value.row())),
              seen.start(),
              partial(number, queries),
              !begun.get(number).add(queries));
        }
      }
    }

    private Partial partial(int lane, Tokens.Run queries) {
      return new Partial(
          outputs.get(lane).on(rank, queries.rows()),
          statistics.get(lane).on(rank, queries.rows()));
    }

    /// Merges the partial results of all lanes; rounds the output to its type.
    private void merge() {
      var first = lanes.getFirst();
      for (int lane = 1; lane < lanes.size(); lane++) {
        program.after(first, Step.NO_CHUNK, lanes.get(lane));
      }
      for (var queries : tokens.runs()) {
        var parts = new ArrayList<Partial>();
        for (int lane = 0; lane < lanes.size(); lane++) {
          if (begun.get(lane).contains(queries)) {
            parts.add(partial(lane, queries));
          }
        }
        var result = new Partial(output.on(rank, queries.rows()), lse.on(rank, queries.rows()));
        if (!parts.equals(List.of(result))) {
          program.merge(first, Step.NO_CHUNK, parts, result);
        }
      }
    }
  }
}
