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
import java.util.Comparator;
import java.util.List;
import java.util.function.Function;
import java.util.stream.IntStream;

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

  /// By rank, the first of its rows in the buffer of all rows.
  private final long[] starts;

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
      // Other ranks fetch from this buffer.
      whole = builder.add(all.apply(method == Method.RING || method == Method.DOUBLING));
    }
    builder.given(in, rank -> shard(rank, chunks.part(rank)));
    if (beside || spec.has(Feature.GATHERED_INPUT)) {
      builder.made(out, whole::on);
    }
    this.starts = starts(ranks);
    this.input = beside ? builder.local(Part.INPUT) : whole;
    this.comm = gemm.communication("comm");
    gemm.openLanes();
  }

  Schedule plan() {
    gemm.rotates(chunks.areEqual() && method != Method.DOUBLING, whole);
    return builder.ordered(program -> new OfRank(program).write());
  }

  /// Returns rows of a rank in its own buffer.
  private Region shard(int source, Slice rows) {
    return shards.on(
        source, own == Own.IN_PLACE ? rows : rows.shifted(-chunks.part(source).start()));
  }

  /// Returns the first of each rank's rows in the buffer of all rows. While rows double, they are
  /// in the order of the reversed bits of their ranks, in which those of a round are consecutive,
  /// unless the buffer is a result.
  private long[] starts(int ranks) {
    var order = IntStream.range(0, ranks).boxed();
    if (method == Method.DOUBLING && own == Own.LEFT_OUT) {
      order = order.sorted(Comparator.comparingInt(rank -> Integer.reverse(rank) >>> 1));
    }
    var starts = new long[ranks];
    long start = 0;
    for (int rank : order.toList()) {
      starts[rank] = start;
      start += chunks.part(rank).length();
    }
    return starts;
  }

  /// Returns rows of a rank in a holder's buffer of all rows.
  private Region gathered(int holder, int source, Slice rows) {
    return whole.on(holder, rows.shifted(starts[source] - chunks.part(source).start()));
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
        case DOUBLING -> doubling();
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
        program.copy(
            comm, piece, peers.stream().map(p -> fetch(p, p, chunks.rows(p, at))).toList());
        arrived(piece, chunk, peers);
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
          program.copy(comm, piece, List.of(fetch(peer, peer, chunks.rows(peer, chunk))));
          arrived(piece, chunk, List.of(peer));
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
          program.copy(comm, piece, List.of(fetch(previous, source, rows)));
          arrived(piece, chunk, List.of(source));
        }
      }
      copyOwn();
    }

    /// In rounds: each rank fetches from a partner all rows that the partner has. Before a round of
    /// distance d a rank has the rows of all ranks that differ from it by a multiple of 2d, and
    /// after it by a multiple of d; so the last round ends with all rows. The partner is d away; if
    /// that rank does not exist, the one d below has the same rows.
    ///
    /// The farthest partners come first, while there are few rows: if each host has as many ranks
    /// as the others, a power of two, a row arrives at each other host once.
    ///
    /// Rank 0 of 4, `allGatherGemm`, `doubling()`:
    ///
    /// ```
    /// comm    > fetch 1 @2 > fetch 2 @1 >
    ///         ^ begun @2   ^ landed 2 @1
    ///                                   ^ read @1,2
    /// gemm-0  | gemm own   | gemm 1     | gemm 2 |
    /// ```
    private void doubling() {
      multiplyOwn();
      int ranks = program.ranks();
      int piece = 0;
      for (int distance = Integer.highestOneBit(ranks - 1); distance > 0; distance /= 2) {
        int partner = (rank ^ distance) < ranks ? rank ^ distance : rank - distance;
        if (partner < 0) {
          continue;
        }
        int twice = 2 * distance;
        var sources =
            IntStream.iterate(partner % twice, source -> source < ranks, source -> source + twice)
                .boxed()
                .toList();
        for (int chunk = 0; chunk < chunks.count(); chunk++) {
          piece++;
          int at = chunk;
          var moves =
              sources.stream().map(source -> fetch(partner, source, chunks.rows(source, at)));
          program.copy(comm, piece, joined(moves.toList()));
          arrived(piece, chunk, sources);
        }
      }
      copyOwn();
    }

    /// Joins moves of consecutive rows.
    private static List<Move> joined(List<Move> moves) {
      var joined = new ArrayList<Move>();
      for (var move :
          moves.stream().sorted(Comparator.comparingLong(move -> move.to().row())).toList()) {
        if (!joined.isEmpty()
            && follows(joined.getLast().from(), move.from())
            && follows(joined.getLast().to(), move.to())) {
          var before = joined.removeLast();
          joined.add(new Move(both(before.from(), move.from()), both(before.to(), move.to())));
        } else {
          joined.add(move);
        }
      }
      return joined;
    }

    private static boolean follows(Region region, Region next) {
      return region.buffer().equals(next.buffer()) && region.slice().end() == next.row();
    }

    private static Region both(Region region, Region next) {
      return region.rows(new Slice(region.row(), region.rows() + next.rows()));
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
      program.copy(
          comm, 0, peers.stream().map(peer -> fetch(peer, peer, chunks.part(peer))).toList());
      copyOwn();
      gemm.multiplyAfter(comm, program, input);
    }

    /// Fetches a source's rows from a rank that has them.
    private Move fetch(int holder, int source, Slice rows) {
      var from = source == holder ? shard(source, rows) : gathered(holder, source, rows);
      return new Move(from, gathered(rank, source, rows));
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

    /// Multiplies the rows of a chunk that arrive from some ranks.
    private void arrived(int piece, int chunk, List<Integer> sources) {
      if (beside) {
        return;
      }
      var tiles = new ArrayList<Tile>();
      for (int source : sources) {
        var rows = chunks.rows(source, chunk);
        tiles.add(new Tile(gathered(rank, source, rows), gemm.output.on(rank, rows)));
      }
      multiply(piece, tiles);
    }

    private void multiply(int piece, List<Tile> tiles) {
      program.gemm(gemm.turn(piece), piece, tiles, gemm.weight(rank), gemm.finish(false));
    }
  }
}
