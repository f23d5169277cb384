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
import java.util.stream.Stream;

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

  /// Lane of what crosses between groups.
  private final Lane across;

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
      whole = builder.add(all.apply(method.passesOn()));
    }
    builder.given(in, rank -> shard(rank, chunks.part(rank)));
    if (beside || spec.has(Feature.GATHERED_INPUT)) {
      builder.made(out, whole::on);
    }
    this.starts = starts(ranks);
    this.input = beside ? builder.local(Part.INPUT) : whole;
    this.across =
        method == Method.TWO_LEVEL ? gemm.communication("across") : gemm.communication("comm");
    this.comm = method == Method.TWO_LEVEL ? gemm.communication("within") : across;
    gemm.openLanes();
  }

  Schedule plan() {
    boolean alike = method != Method.DOUBLING && method != Method.TWO_LEVEL;
    gemm.rotates(chunks.areEqual() && alike, whole);
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

  /// Rows of a source, in the memory of a rank that has them.
  private record Fetch(int holder, int source) {}

  /// Rows that a rank fetches and then multiplies together, in chunks.
  ///
  /// @param across from other groups
  private record Round(List<Fetch> across, List<Fetch> within) {
    static Round of(Fetch... within) {
      return new Round(List.of(), List.of(within));
    }
  }

  /// Regions that are copied, or multiplied, one to the other.
  private record Pair(Region from, Region to) {
    /// Joins pairs whose rows follow each other.
    static List<Pair> joined(Stream<Pair> pairs) {
      var joined = new ArrayList<Pair>();
      pairs.forEach(
          next -> {
            var last = joined.isEmpty() ? next : joined.getLast();
            if (!joined.isEmpty() && follows(last.from, next.from) && follows(last.to, next.to)) {
              joined.removeLast();
              joined.add(new Pair(both(last.from, next.from), both(last.to, next.to)));
            } else {
              joined.add(next);
            }
          });
      return joined;
    }

    private static boolean follows(Region region, Region next) {
      return region.rank() == next.rank()
          && region.buffer().equals(next.buffer())
          && region.slice().end() == next.row();
    }

    private static Region both(Region region, Region next) {
      return region.rows(new Slice(region.row(), region.rows() + next.rows()));
    }
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
        case PIPELINED, BULK -> fetch(pipelined());
        case DIRECT -> fetch(direct());
        case RING -> fetch(ring());
        case DOUBLING -> fetch(doubling());
        case TWO_LEVEL -> fetch(twoLevel());
        case UNFUSED -> unfused();
      }
      if (beside && method != Method.UNFUSED) {
        gemm.multiplyBeside(program, input);
      }
    }

    /// Multiplies this rank's own rows, and the others round by round as they arrive.
    private void fetch(List<Round> rounds) {
      if (!beside) {
        var mine = chunks.part(rank);
        multiply(0, List.of(new Tile(shard(rank, mine), gemm.output.on(rank, mine))));
      }
      int piece = 0;
      for (var round : rounds) {
        for (int chunk = 0; chunk < chunks.count(); chunk++) {
          piece++;
          fetch(across, piece, chunk, round.across());
          fetch(comm, piece, chunk, round.within());
          arrived(piece, chunk, round);
        }
      }
      copyOwn();
    }

    private void fetch(Lane lane, int piece, int chunk, List<Fetch> some) {
      var pairs = Pair.joined(some.stream().map(fetch -> copied(fetch, chunk)));
      program.copy(
          lane, piece, pairs.stream().map(each -> new Move(each.from(), each.to())).toList());
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
    private List<Round> pipelined() {
      return List.of(new Round(List.of(), owned(peers)));
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
    private List<Round> direct() {
      return peers.stream().map(peer -> Round.of(new Fetch(peer, peer))).toList();
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
    private List<Round> ring() {
      return IntStream.range(1, program.ranks())
          .mapToObj(step -> Round.of(new Fetch(neighbors.previous(), neighbors.back(step))))
          .toList();
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
    private List<Round> doubling() {
      int ranks = program.ranks();
      var rounds = new ArrayList<Round>();
      for (int distance = Integer.highestOneBit(ranks - 1); distance > 0; distance /= 2) {
        int partner = (rank ^ distance) < ranks ? rank ^ distance : rank - distance;
        if (partner < 0) {
          continue;
        }
        int twice = 2 * distance;
        rounds.add(
            new Round(
                List.of(),
                IntStream.iterate(partner % twice, source -> source < ranks, next -> next + twice)
                    .boxed()
                    .sorted(Comparator.comparingLong(source -> starts[source]))
                    .map(source -> new Fetch(partner, source))
                    .toList()));
      }
      return rounds;
    }

    /// In two levels: first the rows of this rank's own group. Those of another group cross to each
    /// rank from the one at its place there, and from it to the others of its own group. So a row
    /// crosses once, while rows of the group before are passed on.
    ///
    /// Rank 0 of 4, `allGatherGemm`, `twoLevel(2)`:
    ///
    /// ```
    /// across  > fetch 2 @2 >
    ///         ^ begun @2                ^ read @1,2
    /// within  | fetch 1 @1 | fetch 2 @1 >
    ///         ^ begun @1   ^ landed 2 @1
    /// gemm-0  | gemm own   | gemm 1     | gemm 2 |
    /// ```
    private List<Round> twoLevel() {
      var groups = Groups.of(gemm.overlap, rank, program.ranks());
      var places = groups.otherPlaces();
      var rounds = new ArrayList<Round>();
      rounds.add(
          new Round(
              List.of(),
              owned(places.stream().map(place -> groups.member(groups.own(), place)).toList())));
      for (int group : groups.others()) {
        rounds.add(
            new Round(
                owned(List.of(groups.counterpart(group))),
                places.stream()
                    .map(
                        place ->
                            new Fetch(
                                groups.member(groups.own(), place), groups.member(group, place)))
                    .toList()));
      }
      return rounds;
    }

    /// Returns the rows of some ranks, each in its own memory.
    private static List<Fetch> owned(List<Integer> ranks) {
      return ranks.stream().map(owner -> new Fetch(owner, owner)).toList();
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
      fetch(comm, 0, 0, owned(peers));
      copyOwn();
      gemm.multiplyAfter(comm, program, input);
    }

    private Pair copied(Fetch fetch, int chunk) {
      int source = fetch.source();
      int holder = fetch.holder();
      var rows = chunks.rows(source, chunk);
      var from = source == holder ? shard(source, rows) : gathered(holder, source, rows);
      return new Pair(from, gathered(rank, source, rows));
    }

    private void copyOwn() {
      if (own == Own.COPIED) {
        var mine = chunks.part(rank);
        program.copy(comm, Step.NO_CHUNK, shard(rank, mine), whole.on(rank, mine));
      }
    }

    /// Multiplies the rows of a chunk of a round.
    private void arrived(int piece, int chunk, Round round) {
      if (beside) {
        return;
      }
      var pairs =
          Stream.concat(round.across().stream(), round.within().stream())
              .map(Fetch::source)
              .sorted()
              .map(
                  source -> {
                    var rows = chunks.rows(source, chunk);
                    return new Pair(gathered(rank, source, rows), gemm.output.on(rank, rows));
                  });
      multiply(
          piece,
          Pair.joined(pairs).stream().map(each -> new Tile(each.from(), each.to())).toList());
    }

    private void multiply(int piece, List<Tile> tiles) {
      program.gemm(gemm.turn(piece), piece, tiles, gemm.weight(rank), gemm.finish(false));
    }
  }
}
