package braid.schedule.plan;

import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.Method;
import braid.model.Overlap;
import braid.schedule.Buffer;
import braid.schedule.Buffer.Shape;
import braid.schedule.Lane;
import braid.schedule.Part;
import braid.schedule.Program;
import braid.schedule.Region;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import braid.schedule.Step;
import braid.schedule.Step.Move;
import braid.schedule.Step.Tile;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/// Plans all-gather→GEMM, and a GEMM beside an all-gather of other data. Every rank fetches its
/// peers' rows from symmetric memory into its buffer of all rows. Rows are multiplied as they
/// arrive; a rank's own rows are multiplied in place.
final class GatherPlanner {
  /// Placement of a rank's own rows in the buffer of all rows.
  private enum Own {
    /// Not in it, because no step reads them there.
    LEFT_OUT,
    /// Copied within the rank.
    COPIED,
    /// In it from the start: the caller writes each rank's rows to their position in the buffer of
    /// all rows.
    IN_PLACE
  }

  private final Schedule.Builder builder;
  private final Multiplication gemm;
  private final boolean beside;
  private final Method method;
  private final Own own;
  private final Chunks chunks;
  private final Lane comm;
  private final Buffer shards;
  private final Buffer whole;
  private final Buffer input;

  GatherPlanner(Schedule.Builder builder, GemmSpec spec, Overlap overlap, int ranks) {
    this.builder = builder;
    this.gemm = new Multiplication(builder, spec, overlap, ranks, overlap.symmetricOutput());
    this.beside = spec.pattern().beside();
    this.method = overlap.method();
    this.own =
        beside || spec.has(Feature.GATHERED_INPUT)
            ? Own.COPIED
            : method != Method.UNFUSED
                ? Own.LEFT_OUT
                // A rank's rows of a transposed buffer are not contiguous among all rows,
                // but the caller's input is.
                : spec.has(Feature.TRANSPOSED_INPUT) && ranks > 1 ? Own.COPIED : Own.IN_PLACE;
    this.chunks = Chunks.of(spec, overlap, ranks);
    boolean byColumns = !beside && spec.has(Feature.TRANSPOSED_INPUT);
    long columns = beside ? 1 : spec.k();
    var in = beside ? Part.BESIDE_INPUT.port() : Part.INPUT.port();
    var out = beside ? Part.BESIDE_OUTPUT.port() : Part.GATHERED_INPUT.port();
    Function<Boolean, Buffer> all =
        symmetric ->
            new Buffer(
                out,
                spec.dtype(),
                Buffer.shapes(ranks, _ -> new Shape(chunks.total(), columns)),
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
                  Buffer.shapes(ranks, rank -> new Shape(chunks.part(rank).length(), columns)),
                  true,
                  byColumns));
      // In a ring the next rank fetches from this buffer.
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
    return builder.ordered(program -> new OfRank(program).write());
  }

  /// Returns rows of a rank in its own buffer.
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

    OfRank(Program program) {
      this.program = program;
      this.rank = program.rank();
      this.neighbors = new Neighbors(rank, program.ranks(), gemm.overlap.order());
      this.peers = neighbors.peers();
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
        gemm.multiplyBeside(program, input);
      }
    }

    /// The collective in chunks: chunk c is the c-th part of every rank's rows. A rank's own rows
    /// are multiplied first; the peers' rows of a chunk when all of them have arrived.
    ///
    /// More chunks shorten the first copy and the last multiplication, which overlap with nothing,
    /// until the fixed cost per chunk (latency, smaller multiplications) outweighs the gain.
    ///
    /// Rank 0 of 4, `allGatherGemm`, `pipelined(4)`:
    ///
    /// ```
    /// comm    > fetch 1  | fetch 2 | fetch 3 | fetch 4 >
    ///         ^ begun @all                             ^ read @all
    /// gemm-0  | gemm own | gemm 1  | gemm 2  | gemm 3  | gemm 4 |
    /// ```
    private void pipelined() {
      multiplyOwn();
      for (int chunk = 0; chunk < chunks.count(); chunk++) {
        int piece = chunk + 1;
        int at = chunk;
        program.copy(comm, piece, peers.stream().map(p -> fetch(p, chunks.rows(p, at))).toList());
        arrived(piece, peers.stream().map(peer -> chunks.rows(peer, at)).toList());
      }
      copyOwn();
    }

    /// Peer by peer, each peer's rows in chunks. Pieces come from one peer at a time, which needs a
    /// link between each pair of ranks.
    ///
    /// Rank 0 of 4, `allGatherGemm`, `direct()`:
    ///
    /// ```
    /// comm    > fetch 1 @1 | fetch 2 @2 | fetch 3 @3 >
    ///         ^ begun @1   ^ begun @2   ^ begun @3   ^ read @all
    /// gemm-0  | gemm own   | gemm 1     | gemm 2     | gemm 3 |
    /// ```
    private void direct() {
      multiplyOwn();
      int piece = 0;
      for (int peer : peers) {
        for (int chunk = 0; chunk < chunks.count(); chunk++) {
          piece++;
          var rows = chunks.rows(peer, chunk);
          program.copy(comm, piece, List.of(fetch(peer, rows)));
          arrived(piece, List.of(rows));
        }
      }
      copyOwn();
    }

    /// Around the ring: each rank fetches from its predecessor, first the predecessor's own rows,
    /// then the rows that it has fetched itself. Only links between neighbors are used.
    ///
    /// Rank 0 of 4, `allGatherGemm`, `ring()`:
    ///
    /// ```
    /// comm    > fetch 1 @3 > fetch 2 @3 > fetch 3 @3 >
    ///         ^ begun @3   ^ landed 2 @3             ^ read @1
    ///                                   ^ landed 3 @3
    /// gemm-0  | gemm own   | gemm 1     | gemm 2     | gemm 3 |
    /// ```
    private void ring() {
      multiplyOwn();
      int previous = neighbors.previous();
      int piece = 0;
      for (int step = 1; step < program.ranks(); step++) {
        int source = neighbors.back(step);
        for (int chunk = 0; chunk < chunks.count(); chunk++) {
          piece++;
          var rows = chunks.rows(source, chunk);
          var from = step == 1 ? shard(source, rows) : whole.on(previous, rows);
          program.copy(comm, piece, from, whole.on(rank, rows));
          arrived(piece, List.of(rows));
        }
      }
      copyOwn();
    }

    /// First all communication, then the whole multiplication.
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
      program.copy(comm, 0, peers.stream().map(peer -> fetch(peer, chunks.part(peer))).toList());
      copyOwn();
      gemm.multiplyAfter(comm, program, input);
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

    /// Multiplies rows that arrive.
    private void arrived(int piece, List<Slice> rows) {
      if (beside || rows.stream().allMatch(Slice::isEmpty)) {
        return;
      }
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
