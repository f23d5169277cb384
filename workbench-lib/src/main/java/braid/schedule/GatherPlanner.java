package braid.schedule;

import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.Method;
import braid.model.Overlap;
import braid.schedule.Buffer.Shape;
import braid.schedule.Step.Move;
import braid.schedule.Step.Tile;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/// All-gather→GEMM, and a GEMM beside an all-gather of other data. Every rank fetches: its peers'
/// rows lie in symmetric memory, and it copies them, each to its place among all rows. Rows are
/// multiplied as they arrive, its own from where they are.
final class GatherPlanner {
  /// How a rank's own rows come to be among all rows.
  private enum Own {
    /// They do not: nobody reads them there.
    LEFT_OUT,
    /// By a copy within the rank.
    COPIED,
    /// They are there from the start: each rank's rows lie in their place in a buffer of all rows.
    IN_PLACE
  }

  private final Schedule.Builder builder;
  private final Multiplication gemm;
  private final boolean beside;
  private final Method method;
  private final Own own;
  private final Chunks chunks;
  private final Handshake handshake;
  private final Lane comm;
  private final Buffer shards;
  private final Buffer whole;
  private final Buffer input;

  GatherPlanner(Schedule.Builder builder, GemmSpec spec, Overlap how, int ranks) {
    this.builder = builder;
    this.gemm = new Multiplication(builder, spec, how, ranks, how.symmetricOutput());
    this.beside = spec.pattern().beside();
    this.method = how.method();
    this.own =
        beside || spec.has(Feature.GATHERED_INPUT)
            ? Own.COPIED
            : method != Method.UNFUSED
                ? Own.LEFT_OUT
                // A rank's rows of what is stored by columns are not in one piece among all rows,
                // and what its caller writes is.
                : spec.has(Feature.TRANSPOSED_INPUT) && ranks > 1 ? Own.COPIED : Own.IN_PLACE;
    this.chunks = GemmPlanner.chunks(spec, how, ranks);
    boolean byColumns = !beside && spec.has(Feature.TRANSPOSED_INPUT);
    this.handshake = new Handshake(builder, ranks, how.splits());
    long columns = beside ? 1 : spec.k();
    var in = beside ? Part.BESIDE_INPUT.port() : Part.INPUT.port();
    var out = beside ? Part.BESIDE_OUTPUT.port() : Part.GATHERED_INPUT.port();
    Function<Boolean, Buffer> all =
        symmetric ->
            new Buffer(
                out,
                spec.dtype(),
                Schedule.Builder.shapes(ranks, _ -> new Shape(chunks.total(), columns)),
                symmetric,
                byColumns);
    if (own == Own.IN_PLACE) {
      shards = builder.add(all.apply(true));
      whole = shards;
    } else {
      shards =
          builder.add(
              new Buffer(
                  in,
                  spec.dtype(),
                  Schedule.Builder.shapes(
                      ranks, rank -> new Shape(chunks.part(rank).length(), columns)),
                  true,
                  byColumns));
      // In a ring the next rank fetches from here.
      whole = builder.add(all.apply(method == Method.RING));
    }
    builder.given(in, rank -> shard(rank, chunks.part(rank)));
    if (beside || spec.has(Feature.GATHERED_INPUT)) {
      builder.made(out, whole::on);
    }
    this.input = beside ? builder.local(Part.INPUT) : whole;
    this.comm = gemm.communication("comm");
    gemm.openLanes();
  }

  Schedule plan() {
    return builder.steps(program -> new OfRank(program).write());
  }

  /// Those rows of a rank, where that rank has them.
  private Region shard(int source, Slice rows) {
    return shards.on(
        source, own == Own.IN_PLACE ? rows : rows.shifted(-chunks.part(source).start()));
  }

  /// The steps of one rank.
  private final class OfRank {
    private final Program program;
    private final int rank;
    private final Neighbors neighbors;
    private final List<Integer> peers;
    private final Handshake.OfRank signals;

    OfRank(Program program) {
      this.program = program;
      this.rank = program.rank();
      this.neighbors = new Neighbors(rank, program.ranks(), gemm.how.order());
      this.peers = neighbors.peers();
      this.signals = handshake.of(program);
    }

    void write() {
      gemm.begin(program);
      switch (method) {
        case PIPELINED, BULK -> pipelined();
        case DIRECT -> direct();
        case RING -> ring();
        case UNFUSED -> unfused();
      }
      if (beside && method != Method.UNFUSED) {
        gemm.besides(program, input);
      }
    }

    /// The collective in chunks: chunk c is the c-th part of every rank's rows. Own rows are there
    /// already and are multiplied first; the peers' rows of a chunk when all of them have landed.
    ///
    /// More chunks make the first copy and the last multiplication shorter, which have no company,
    /// until the fixed cost of each (latency, smaller multiplications) is more.
    ///
    /// Rank 0 of 4, `allGatherGemm`, `pipelined(4)`:
    ///
    /// ```
    /// comm    > fetch 1  | fetch 2 | fetch 3 | fetch 4 >
    ///         ^ begun @all                             ^ read @all
    /// gemm-0  | gemm own | gemm 1  | gemm 2  | gemm 3  | gemm 4 |
    /// ```
    private void pipelined() {
      beginAll();
      multiplyOwn();
      peers.forEach(peer -> signals.awaitBegun(comm, peer));
      for (int chunk = 0; chunk < chunks.count(); chunk++) {
        int piece = chunk + 1;
        int at = chunk;
        program.copy(comm, piece, peers.stream().map(p -> fetch(p, chunks.rows(p, at))).toList());
        arrived(piece, peers.stream().map(peer -> chunks.rows(peer, at)).toList());
      }
      end();
    }

    /// Peer by peer, each peer's rows in chunks. The pieces come from one peer at a time, which
    /// wants links between each pair.
    ///
    /// Rank 0 of 4, `allGatherGemm`, `direct()`:
    ///
    /// ```
    /// comm    > fetch 1 @1 | fetch 2 @2 | fetch 3 @3 >
    ///         ^ begun @1   ^ begun @2   ^ begun @3   ^ read @all
    /// gemm-0  | gemm own   | gemm 1     | gemm 2     | gemm 3 |
    /// ```
    private void direct() {
      beginAll();
      multiplyOwn();
      int piece = 0;
      for (int peer : peers) {
        signals.awaitBegun(comm, peer);
        for (int chunk = 0; chunk < chunks.count(); chunk++) {
          piece++;
          var rows = chunks.rows(peer, chunk);
          program.copy(comm, piece, List.of(fetch(peer, rows)));
          arrived(piece, List.of(rows));
        }
      }
      end();
    }

    /// Round the ring: each rank fetches from its predecessor what that one has, first its own
    /// rows, then what it fetched itself. Only links between neighbors are used.
    ///
    /// Rank 0 of 4, `allGatherGemm`, `ring()`:
    ///
    /// ```
    /// comm    > fetch 1 @3 > fetch 2 @3 > fetch 3 @3 >
    ///         ^ begun @3   ^ landed 0 @3             ^ read @1
    ///                                   ^ landed 0 @3
    /// gemm-0  | gemm own   | gemm 1     | gemm 2     | gemm 3 |
    /// ```
    private void ring() {
      boolean alone = program.ranks() == 1;
      if (!alone) {
        signals.begin(comm, neighbors.next());
      }
      multiplyOwn();
      int piece = 0;
      for (int step = 1; step < program.ranks(); step++) {
        int source = neighbors.back(step);
        for (int chunk = 0; chunk < chunks.count(); chunk++) {
          piece++;
          var rows = chunks.rows(source, chunk);
          if (step == 1) {
            signals.awaitBegun(comm, source);
            program.copy(comm, piece, List.of(fetch(source, rows)));
          } else {
            signals.awaitLanded(comm, source, chunk, neighbors.previous());
            program.copy(comm, piece, whole.on(neighbors.previous(), rows), whole.on(rank, rows));
          }
          if (step < program.ranks() - 1) {
            signals.landed(comm, neighbors.next(), source, chunk);
          }
          arrived(piece, List.of(rows));
        }
      }
      if (!alone) {
        signals.read(comm, neighbors.previous());
      }
      copyOwn();
      if (!alone) {
        signals.awaitRead(comm, neighbors.next());
      }
    }

    /// All of the communication, then all of the multiplication.
    ///
    /// Rank 0 of 4, `allGatherGemm`, `unfused()`:
    ///
    /// ```
    /// comm    > fetch 0 >
    ///         ^ begun @all
    ///                   ^ read @all
    /// gemm-0            | gemm 0 |
    /// ```
    private void unfused() {
      beginAll();
      peers.forEach(peer -> signals.awaitBegun(comm, peer));
      program.copy(comm, 0, peers.stream().map(peer -> fetch(peer, chunks.part(peer))).toList());
      end();
    }

    private void beginAll() {
      peers.forEach(peer -> signals.begin(comm, peer));
    }

    private void end() {
      peers.forEach(peer -> signals.read(comm, peer));
      copyOwn();
      if (method == Method.UNFUSED) {
        program.after(gemm.turn(0), 0, program.mark(comm, 0));
        gemm.multiply(program, 0, input, new Slice(0, gemm.spec.m()), gemm.finish(false));
      }
      peers.forEach(peer -> signals.awaitRead(comm, peer));
    }

    private Move fetch(int source, Slice rows) {
      return new Move(shard(source, rows), whole.on(rank, rows));
    }

    private void copyOwn() {
      if (own == Own.COPIED) {
        var mine = chunks.part(rank);
        program.copy(comm, Step.NO_CHUNK, shard(rank, mine), whole.on(rank, mine));
      }
    }

    private void multiplyOwn() {
      if (!beside) {
        var mine = chunks.part(rank);
        multiply(0, List.of(new Tile(shard(rank, mine), gemm.output.on(rank, mine))));
      }
    }

    /// Multiplies rows that have come once the copies given so far are done.
    private void arrived(int piece, List<Slice> rows) {
      if (beside || rows.stream().allMatch(Slice::isEmpty)) {
        return;
      }
      program.after(gemm.turn(piece), piece, program.mark(comm, piece));
      var tiles = new ArrayList<Tile>();
      for (var some : rows) {
        tiles.add(new Tile(whole.on(rank, some), gemm.output.on(rank, some)));
      }
      multiply(piece, tiles);
    }

    private void multiply(int piece, List<Tile> tiles) {
      program.gemm(gemm.turn(piece), piece, tiles, gemm.weight(rank), gemm.finish(false));
    }
  }
}
