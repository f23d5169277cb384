package braid.schedule;

import braid.model.AttentionSpec;
import braid.model.ChunkOrder;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.schedule.Buffer.Shape;
import braid.schedule.Step.Move;
import braid.schedule.Step.Partial;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Plans attention whose heads are divided among the ranks of a group: all ranks, or some
/// consecutive ones. Every rank reads the query of its heads from its group, and their keys and
/// values from all ranks, group by group. It computes the attention of these heads for all tokens
/// of its group, and writes the output of each token to the rank that holds it.
///
/// The splits are heads that are exchanged one after another: while the first are attended to, the
/// next are read. Each lane computes whole splits, so that nothing is merged.
final class UlyssesPlanner {
  private final AttentionSpec spec;
  private final int ranks;
  private final int splits;

  /// Number of ranks of a group.
  private final int sharing;

  /// The attention of one split.
  private final AttentionSpec part;

  private final Schedule.Builder builder;
  private final Handshake handshake;
  private final Buffer query;
  private final Buffer key;
  private final Buffer value;
  private final Buffer output;
  private final Buffer lse;

  /// Queries and results of a group, by split.
  private final List<Buffer> queries = new ArrayList<>();

  private final List<Buffer> sums = new ArrayList<>();
  private final List<Buffer> outputs = new ArrayList<>();
  private final List<Buffer> statistics = new ArrayList<>();

  /// Keys and values: one buffer per unit in flight.
  private final List<Buffer> keys = new ArrayList<>();

  private final List<Buffer> values = new ArrayList<>();
  private final Lane comm;
  private final List<Lane> lanes;

  /// Keys and values of a split that are fetched together: those of one group, with the rows that
  /// they are fetched into.
  private record Unit(int split, int group, List<Tokens.Run> blocks) {
    long rows() {
      return blocks.stream().mapToLong(block -> block.positions().length()).sum();
    }
  }

  UlyssesPlanner(AttentionSpec spec, ContextParallel how, int ranks) {
    this.spec = spec;
    this.ranks = ranks;
    this.splits = how.splits();
    this.sharing = how.headRanks(ranks);
    this.part = spec.heads(spec.heads() / sharing / splits, spec.kvHeads() / sharing / splits);
    this.builder = Schedule.on(new Goal.Attention(spec, how), ranks);
    this.handshake = new Handshake(builder, ranks, 1);
    query = builder.symmetric(Part.QUERY);
    key = builder.symmetric(Part.KEY);
    value = builder.symmetric(Part.VALUE);
    output = builder.symmetric(Part.OUTPUT);
    lse = builder.symmetric(Part.LSE);
    var tokens = IntStream.range(0, ranks).mapToObj(rank -> tokens(rank / sharing).rows()).toList();
    long columns = (long) part.heads() * part.headSize();
    boolean rounds = sharing < ranks && spec.dtype() != DType.FP32;
    for (int split = 0; split < splits; split++) {
      queries.add(gathered("query of heads " + split, spec.dtype(), tokens, columns));
      outputs.add(gathered("output of heads " + split, spec.dtype(), tokens, columns));
      sums.add(
          rounds
              ? gathered("sum of heads " + split, DType.FP32, tokens, columns)
              : outputs.getLast());
      statistics.add(gathered("lse of heads " + split, DType.FP32, tokens, part.heads()));
    }
    long kvColumns = (long) part.kvHeads() * part.headSize();
    var fetched =
        IntStream.range(0, ranks)
            .mapToObj(rank -> units(rank).stream().mapToLong(Unit::rows).max().orElse(0))
            .toList();
    int slots = Math.min(how.streams() + 1, splits * ranks / sharing);
    for (int slot = 0; slot < slots; slot++) {
      keys.add(gathered("fetched key " + slot, spec.dtype(), fetched, kvColumns));
      values.add(gathered("fetched value " + slot, spec.dtype(), fetched, kvColumns));
    }
    comm = AttentionPlanner.communicationLane(builder, how);
    lanes = AttentionPlanner.attentionLanes(builder, how);
  }

  Schedule plan() {
    return builder.steps(program -> new OfRank(program).write());
  }

  /// @param rows number of rows, by rank
  private Buffer gathered(String name, DType dtype, List<Long> rows, long columns) {
    var shapes = Schedule.Builder.shapes(ranks, rank -> new Shape(rows.get(rank), columns));
    return builder.add(new Buffer(name, dtype, shapes, false, false));
  }

  private Tokens tokens(int group) {
    return Tokens.ofGroup(spec, ranks, group * sharing, sharing);
  }

  private List<Integer> members(int group) {
    return IntStream.range(group * sharing, (group + 1) * sharing).boxed().toList();
  }

  /// Returns the units of a rank: split by split, its own group first.
  private List<Unit> units(int rank) {
    var units = new ArrayList<Unit>();
    int own = rank / sharing;
    var others = new Neighbors(own, ranks / sharing, ChunkOrder.PREVIOUS_FIRST).peers();
    for (int split = 0; split < splits; split++) {
      units.add(new Unit(split, own, blocks(own, own)));
      for (int group : others) {
        units.add(new Unit(split, group, blocks(own, group)));
      }
    }
    units.removeIf(unit -> unit.blocks().isEmpty());
    return units;
  }

  /// Returns the positions of another group that any query of a group sees, in consecutive rows; of
  /// its own group all, so that queries that see nothing have a result too.
  private List<Tokens.Run> blocks(int group, int source) {
    var blocks = new ArrayList<Tokens.Run>();
    long row = 0;
    for (var run : tokens(source).runs()) {
      var needed =
          group == source ? List.of(run.positions()) : tokens(group).seen(spec, run.positions());
      for (var seen : needed) {
        blocks.add(new Tokens.Run(row, seen));
        row += seen.length();
      }
    }
    return blocks;
  }

  /// Returns the moves of a rank's tokens that are in a unit.
  private List<Move> fetched(Unit unit, int slot, int source, int rank) {
    var moves = new ArrayList<Move>();
    var columns = columns(rank, unit.split(), (long) part.kvHeads() * part.headSize());
    for (var run : Tokens.of(spec, ranks, source).runs()) {
      for (var block : unit.blocks()) {
        var both = block.positions().and(run.positions());
        if (!both.isEmpty()) {
          var from = run.rows(both);
          var to = block.rows(both);
          moves.add(new Move(key.on(source, from, columns), keys.get(slot).on(rank, to)));
          moves.add(new Move(value.on(source, from, columns), values.get(slot).on(rank, to)));
        }
      }
    }
    return moves;
  }

  /// Returns the columns of a rank's heads, of which a split has `width` columns.
  private Slice columns(int rank, int split, long width) {
    return new Slice((rank % sharing * splits + split) * width, width);
  }

  /// The steps of one rank.
  private final class OfRank {
    private final Program program;
    private final int rank;
    private final Tokens tokens;
    private final List<Integer> peers;
    private final Handshake.OfRank signals;
    private final List<Unit> units;

    OfRank(Program program) {
      this.program = program;
      this.rank = program.rank();
      this.tokens = tokens(rank / sharing);
      this.peers =
          new Neighbors(rank % sharing, sharing, ChunkOrder.NEXT_FIRST)
              .peers().stream().map(peer -> rank / sharing * sharing + peer).toList();
      this.signals = handshake.of(program);
      this.units = units(rank);
    }

    /// An all-to-all of heads in two splits: while the first is attended to, the second is read.
    ///
    /// Rank 3 of 4, `causalAttention`, `ulysses(2)`:
    ///
    /// ```
    /// comm      > fetch 1 | fetch 2  | copy 2 | send 1   | copy 1 | send 2 >
    ///           ^ begun @all                                               ^ landed 0 @all
    /// attend-0  | copy 1  | attend 1 |        | attend 2 | copy 2 |
    /// ```
    ///
    /// In two levels: ranks 2 and 3 exchange heads, and read the keys of ranks 0 and 1.
    ///
    /// Rank 3 of 4, `causalAttention`, `twoLevel(2)`:
    ///
    /// ```
    /// comm      > fetch 1 @2 | fetch 2  >          | send 2 @2 >
    ///           ^ begun @2   ^ begun @0,1                      ^ landed 0 @2
    /// attend-0  | copy 1     | attend 1 | attend 2 | copy 2    |
    /// ```
    void write() {
      var readers =
          new Neighbors(rank / sharing, ranks / sharing, ChunkOrder.NEXT_FIRST)
              .peers().stream()
                  .filter(this::readsOwn)
                  .flatMap(group -> members(group).stream())
                  .toList();
      Stream.concat(peers.stream(), readers.stream()).forEach(peer -> signals.begin(comm, peer));
      var done = new int[units.size()];
      for (int unit = 0; unit < units.size(); unit++) {
        int before = unit - keys.size();
        if (before >= 0) {
          program.after(comm, unit + 1, done[before]);
        }
        fetch(unit);
        program.after(lane(unit), unit + 1, program.mark(comm, unit + 1));
        attend(unit);
        done[unit] = program.mark(lane(unit), unit + 1);
        if (before >= 0) {
          deliver(before, done[before]);
        }
      }
      for (int unit = Math.max(0, units.size() - keys.size()); unit < units.size(); unit++) {
        deliver(unit, done[unit]);
      }
      // Also tells the peer that its own memory is no longer read.
      peers.forEach(peer -> signals.landed(comm, peer, rank, 0));
      peers.forEach(peer -> signals.awaitLanded(comm, peer, 0, peer));
      readers.forEach(reader -> signals.awaitRead(comm, reader));
    }

    /// Returns whether a group reads any of this rank's keys.
    private boolean readsOwn(int group) {
      return Tokens.of(spec, ranks, rank).runs().stream()
          .anyMatch(run -> !tokens(group).seen(spec, run.positions()).isEmpty());
    }

    private Lane lane(int unit) {
      return lanes.get(units.get(unit).split() % lanes.size());
    }

    private int slot(int unit) {
      return unit % keys.size();
    }

    private boolean isOwn(Unit unit) {
      return unit.group() == rank / sharing;
    }

    private void fetch(int number) {
      var unit = units.get(number);
      var moves = new ArrayList<Move>();
      var sources = new TreeSet<Integer>();
      for (int source : isOwn(unit) ? peers : members(unit.group())) {
        var fromSource = moves(unit, number, source);
        if (!fromSource.isEmpty()) {
          signals.awaitBegun(comm, source);
          sources.add(source);
        }
        moves.addAll(fromSource);
      }
      program.copy(comm, number + 1, moves);
      if (isOwn(unit)) {
        // Nothing else is on the lane before the first unit.
        program.copy(number == 0 ? lane(0) : comm, number + 1, moves(unit, number, rank));
        return;
      }
      if (unit.split() == splits - 1) {
        sources.forEach(source -> signals.read(comm, source));
      }
    }

    private List<Move> moves(Unit unit, int number, int source) {
      var moves = new ArrayList<Move>();
      if (isOwn(unit)) {
        var columns = columns(rank, unit.split(), (long) part.heads() * part.headSize());
        for (var run : Tokens.of(spec, ranks, source).runs()) {
          moves.add(
              new Move(
                  query.on(source, run.rows(), columns),
                  queries.get(unit.split()).on(rank, tokens.rows(run.positions()))));
        }
      }
      moves.addAll(fetched(unit, slot(number), source, rank));
      return moves;
    }

    /// Computes the attention of all queries that see any key of a unit. Rounds the output after
    /// the last unit of a split.
    private void attend(int number) {
      var unit = units.get(number);
      int split = unit.split();
      Set<Tokens.Run> begun = new HashSet<>();
      units.subList(0, number).stream()
          .filter(earlier -> earlier.split() == split)
          .forEach(earlier -> earlier.blocks().forEach(block -> begun.addAll(seeing(block))));
      for (var block : unit.blocks()) {
        for (var run : seeing(block)) {
          var seen = seen(run, block);
          program.attend(
              lane(number),
              number + 1,
              part,
              queries.get(split).on(rank, run.rows()),
              run.positions().start(),
              keys.get(slot(number)).on(rank, block.rows(seen)),
              values.get(slot(number)).on(rank, block.rows(seen)),
              seen.start(),
              partial(sums.get(split), split, run.rows()),
              !begun.add(run));
        }
      }
      if (isLast(number) && !sums.get(split).equals(outputs.get(split))) {
        var all = new Slice(0, tokens.rows());
        program.merge(
            lane(number),
            number + 1,
            List.of(partial(sums.get(split), split, all)),
            partial(outputs.get(split), split, all));
      }
    }

    private List<Tokens.Run> seeing(Tokens.Run block) {
      return tokens.runs().stream().filter(run -> !seen(run, block).isEmpty()).toList();
    }

    /// Returns the positions of a block that the queries of a run see; if all of them are padding,
    /// their own, so that their result is begun, and stays empty.
    private Slice seen(Tokens.Run run, Tokens.Run block) {
      var seen = Tokens.seen(spec, run, block.positions());
      return seen.isEmpty() && run.positions().equals(block.positions()) ? run.positions() : seen;
    }

    private Partial partial(Buffer of, int split, Slice rows) {
      return new Partial(of.on(rank, rows), statistics.get(split).on(rank, rows));
    }

    private boolean isLast(int unit) {
      return unit == units.size() - 1 || units.get(unit + 1).split() != units.get(unit).split();
    }

    /// Writes the results of a split to the ranks that hold the tokens, after its last unit.
    private void deliver(int unit, int done) {
      if (!isLast(unit)) {
        return;
      }
      int split = units.get(unit).split();
      program.after(comm, unit + 1, done);
      program.copy(
          comm, unit + 1, peers.stream().flatMap(peer -> results(split, peer).stream()).toList());
      // Nothing else is on the lane after the last unit.
      program.copy(split == splits - 1 ? lane(unit) : comm, unit + 1, results(split, rank));
    }

    private List<Move> results(int split, int owner) {
      var moves = new ArrayList<Move>();
      for (var run : Tokens.of(spec, ranks, owner).runs()) {
        var from = partial(outputs.get(split), split, tokens.rows(run.positions()));
        long width = from.output().columns();
        moves.add(
            new Move(from.output(), output.on(owner, run.rows(), columns(rank, split, width))));
        moves.add(
            new Move(from.lse(), lse.on(owner, run.rows(), columns(rank, split, part.heads()))));
      }
      return moves;
    }
  }
}
