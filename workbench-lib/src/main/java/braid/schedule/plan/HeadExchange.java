package braid.schedule.plan;

import braid.model.AttentionSpec;
import braid.model.ChunkOrder;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.Tokens;
import braid.schedule.Buffer;
import braid.schedule.Buffer.Shape;
import braid.schedule.Lane;
import braid.schedule.Part;
import braid.schedule.Program;
import braid.schedule.Region;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import braid.schedule.Step.Move;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/// Heads divided among the ranks of a group: all ranks, or some consecutive ones. Every rank
/// fetches the columns of its heads: of the tensors of its group's tokens, and of the keys and
/// values of all ranks, group by group. It writes results to the ranks of its group, which hold the
/// tokens.
///
/// The splits are heads that are exchanged one after another: while the first are attended to, the
/// next are fetched. Each lane computes whole splits.
final class HeadExchange {
  private final AttentionSpec spec;
  private final int ranks;
  private final int splits;

  /// Number of ranks of a group.
  private final int sharing;

  private final Schedule.Builder builder;
  private final ExchangedKeys exchanged;

  /// Each rank's own keys and values, as it sends them.
  private final KeyValue kv;

  /// Keys and values: one pair of buffers per unit in flight.
  private final List<KeyValue> fetched = new ArrayList<>();

  /// The same keys and values as they are used.
  private final List<KeyValue> used = new ArrayList<>();

  /// Tensors that are fetched besides keys and values, and results.
  private final List<Divided> gathered = new ArrayList<>();

  private final List<Divided> returned = new ArrayList<>();
  private final Lane comm;
  private final List<Lane> lanes;

  /// A tensor of a rank's tokens, and the columns of its heads for the tokens of its group: a
  /// buffer per split.
  ///
  /// @param tokens tokens of each rank that it has rows of
  record Divided(Panel all, List<Buffer> splits, IntFunction<Tokens> tokens) {
    Buffer of(int split) {
      return splits.get(split);
    }
  }

  /// Keys and values of a split that are fetched together: those of one group, one piece after
  /// another.
  record Unit(int split, int group, List<Piece> pieces) {
    long rows() {
      return pieces.stream().mapToLong(Piece::length).sum();
    }

    /// Returns the keys, in the rows that they are fetched into.
    Tokens tokens() {
      return new Tokens(pieces.stream().map(Piece::fetched).toList());
    }
  }

  HeadExchange(
      AttentionSpec spec,
      ContextParallel how,
      Schedule.Builder builder,
      KeyValue given,
      int ranks) {
    this.spec = spec;
    this.ranks = ranks;
    this.splits = how.splits();
    this.sharing = how.headRanks(ranks);
    this.builder = builder;
    exchanged = new ExchangedKeys(spec, builder, given);
    kv = exchanged.sent();
    for (int slot = 0; slot < Math.min(how.streams() + 1, splits * groups()); slot++) {
      fetched.add(keys("fetched ", slot, kv.key().dtype(), columns(kv.key())));
      used.add(exchanged.restored(fetched.getLast()));
    }
    comm = AttentionLanes.communication(builder, "comm", how);
    lanes = AttentionLanes.compute(builder, how);
  }

  /// Returns the attention of one split.
  AttentionSpec part() {
    return spec.heads(spec.heads() / sharing / splits, spec.kvHeads() / sharing / splits);
  }

  int groups() {
    return ranks / sharing;
  }

  /// Returns the number of pairs of buffers that keys and values are fetched into.
  int slots() {
    return fetched.size();
  }

  /// Adds a pair of buffers for the gradients of any unit's keys and values.
  KeyValue gradients(int slot) {
    return keys("gradient of fetched ", slot, DType.FP32, used.getFirst().key().columns());
  }

  /// Adds a pair of buffers with the rows of any unit.
  private KeyValue keys(String prefix, int slot, DType dtype, long columns) {
    var rows =
        LongStream.range(0, ranks)
            .map(rank -> units((int) rank).stream().mapToLong(Unit::rows).max().orElse(0))
            .boxed()
            .toList();
    return KeyValue.of(
        buffer("%skey %d".formatted(prefix, slot), dtype, rows, columns),
        buffer("%svalue %d".formatted(prefix, slot), dtype, rows, columns));
  }

  /// Adds a tensor that is fetched with the keys of a rank's own group.
  Divided gathered(Panel all) {
    gathered.add(divided("", all, all.dtype(), this::queries));
    return gathered.getLast();
  }

  /// Adds a tensor of results, which are written to the ranks that hold the tokens.
  Divided returned(Panel all) {
    returned.add(divided("", all, all.dtype(), this::queries));
    return returned.getLast();
  }

  /// Adds a tensor of results with a row per key.
  Divided returnedKeys(Panel all) {
    returned.add(divided("", all, all.dtype(), this::keys));
    return returned.getLast();
  }

  Divided gathered(Part part) {
    return gathered(Panel.of(builder.symmetric(part)));
  }

  Divided returned(Part part) {
    return returned(Panel.of(builder.symmetric(part)));
  }

  /// Adds sums of results in fp32: the results themselves if they are in fp32.
  Divided sums(Divided results) {
    return results.all().dtype() == DType.FP32
        ? results
        : divided("sum of ", results.all(), DType.FP32, results.tokens());
  }

  private Divided divided(String prefix, Panel all, DType dtype, IntFunction<Tokens> tokens) {
    var rows =
        IntStream.range(0, ranks)
            .mapToObj(rank -> ofGroup(rank / sharing, tokens).count())
            .toList();
    return new Divided(
        all,
        IntStream.range(0, splits)
            .mapToObj(
                split ->
                    buffer(
                        "%s%s of heads %d".formatted(prefix, all, split),
                        dtype,
                        rows,
                        columns(all)))
            .toList(),
        tokens);
  }

  /// @param rows number of rows, by rank
  private Buffer buffer(String name, DType dtype, List<Long> rows, long columns) {
    var shapes = Buffer.shapes(ranks, rank -> new Shape(rows.get(rank), columns));
    return builder.add(new Buffer(name, dtype, shapes, false, false));
  }

  /// Returns the columns of a split.
  private long columns(Panel all) {
    return all.columns() / sharing / splits;
  }

  private Tokens queries(int rank) {
    return Tokens.of(spec, ranks, rank);
  }

  private Tokens keys(int rank) {
    return Tokens.ofKeys(spec, ranks, rank);
  }

  /// @param tokens queries or keys, by rank
  private Tokens ofGroup(int group, IntFunction<Tokens> tokens) {
    return Tokens.together(members(group).stream().map(tokens::apply));
  }

  private List<Integer> members(int group) {
    return IntStream.range(group * sharing, (group + 1) * sharing).boxed().toList();
  }

  /// Returns the units of a rank: split by split, its own group first.
  private List<Unit> units(int rank) {
    var units = new ArrayList<Unit>();
    int own = rank / sharing;
    var others = new Neighbors(own, groups(), ChunkOrder.PREVIOUS_FIRST).peers();
    for (int split = 0; split < splits; split++) {
      units.add(new Unit(split, own, pieces(own, own)));
      for (int group : others) {
        units.add(new Unit(split, group, pieces(own, group)));
      }
    }
    units.removeIf(unit -> unit.pieces().isEmpty());
    return units;
  }

  /// Returns the positions of another group that any query of a group sees; of its own group all,
  /// so that queries that see nothing have a result too.
  private List<Piece> pieces(int group, int source) {
    var pieces = new ArrayList<Piece>();
    var queries = ofGroup(group, this::queries);
    long row = 0;
    for (var run : ofGroup(source, this::keys).runs()) {
      for (var seen : group == source ? List.of(run) : queries.seen(spec, run)) {
        pieces.add(new Piece(source, seen, row));
        row += seen.length();
      }
    }
    return pieces;
  }

  /// Returns the positions of an owner's group that the group of a sender sees.
  List<Piece> piecesOf(int sender, int owner) {
    return pieces(sender / sharing, owner / sharing);
  }

  /// Returns the exchange as one rank takes part in it.
  OfRank of(Program program) {
    return new OfRank(program);
  }

  /// The steps of one rank.
  final class OfRank {
    private final Program program;
    private final int rank;
    private final Tokens tokens;
    private final List<Integer> peers;
    private final List<Unit> units;

    private OfRank(Program program) {
      this.program = program;
      this.rank = program.rank();
      this.tokens = ofGroup(rank / sharing, HeadExchange.this::queries);
      this.peers =
          new Neighbors(rank % sharing, sharing, ChunkOrder.NEXT_FIRST)
              .peers().stream().map(peer -> rank / sharing * sharing + peer).toList();
      this.units = HeadExchange.this.units(rank);
    }

    /// Returns the queries of the group.
    Tokens tokens() {
      return tokens;
    }

    List<Unit> units() {
      return units;
    }

    /// Returns the keys and values of a unit as they are used.
    KeyValue keys(int unit) {
      return used.get(slot(unit));
    }

    /// Rounds the rank's own keys and values if they are exchanged so.
    void round() {
      exchanged.round(program, lane(0));
    }

    /// Restores a fetched unit that was rounded.
    void restore(int unit) {
      var rows = List.of(new Slice(0, units.get(unit).rows()));
      exchanged.restore(program, lane(unit), unit + 1, fetched.get(slot(unit)), keys(unit), rows);
    }

    int slot(int unit) {
      return unit % slots();
    }

    Lane lane(int unit) {
      return lanes.get(units.get(unit).split() % lanes.size());
    }

    Lane comm() {
      return comm;
    }

    boolean isOwn(Unit unit) {
      return unit.group() == rank / sharing;
    }

    /// Returns the rank of another group that computes the same heads.
    int counterpart(int group) {
      return group * sharing + rank % sharing;
    }

    /// Returns whether a unit is the last of its split.
    boolean isLast(int unit) {
      return unit == units.size() - 1 || units.get(unit + 1).split() != units.get(unit).split();
    }

    /// Fetches a unit, with the other tensors of the split before the first of the split.
    void fetch(int number) {
      var unit = units.get(number);
      var moves = new ArrayList<Move>();
      for (int source : isOwn(unit) ? peers : members(unit.group())) {
        moves.addAll(moves(number, source));
      }
      program.copy(comm, number + 1, moves);
      if (isOwn(unit)) {
        // Nothing else is on the lane before the first unit.
        program.copy(number == 0 ? lane(0) : comm, number + 1, moves(number, rank));
      }
    }

    /// Returns the moves of one rank's tokens that are in a unit.
    private List<Move> moves(int number, int source) {
      var unit = units.get(number);
      var keys = fetched.get(slot(number));
      var moves = new ArrayList<Move>();
      var ofQueries = queries(source).runs();
      var ofKeys = HeadExchange.this.keys(source).runs();
      for (int i = 0; i < Math.max(ofQueries.size(), ofKeys.size()); i++) {
        if (isOwn(unit) && i < ofQueries.size()) {
          var run = ofQueries.get(i);
          for (var each : gathered) {
            var into = each.of(unit.split()).on(rank, rows(tokens, run));
            moves.add(
                new Move(part(each.all(), source, Slice.rows(run), unit.split(), into), into));
          }
        }
        if (i < ofKeys.size()) {
          var run = ofKeys.get(i);
          for (var fetched : unit.tokens().within(run.first(), run.end()).runs()) {
            var from = Slice.rows(run.within(fetched.first(), fetched.end()));
            var key = keys.key().on(rank, Slice.rows(fetched));
            var value = keys.value().on(rank, Slice.rows(fetched));
            moves.add(new Move(part(kv.key(), source, from, unit.split(), key), key));
            moves.add(new Move(part(kv.value(), source, from, unit.split(), value), value));
          }
        }
      }
      return moves;
    }

    /// Returns the rows that the group has a rank's tokens in.
    private static Slice rows(Tokens group, Tokens.Run own) {
      return new Slice(group.rowsBefore(own.first()), own.length());
    }

    /// Returns the columns of a tensor that a region of one split holds.
    private Region part(Panel all, int owner, Slice rows, int split, Region held) {
      return all.on(
          owner,
          rows,
          new Slice((rank % sharing * splits + split) * held.columns(), held.columns()));
    }

    /// Writes the results of a unit's split to the other ranks of the group.
    void send(Lane lane, int unit) {
      program.copy(
          lane, unit + 1, peers.stream().flatMap(peer -> results(unit, peer).stream()).toList());
    }

    /// Copies the results of a unit's split for this rank's own tokens.
    void keep(Lane lane, int unit) {
      program.copy(lane, unit + 1, results(unit, rank));
    }

    private List<Move> results(int unit, int owner) {
      int split = units.get(unit).split();
      var moves = new ArrayList<Move>();
      var groups = new ArrayList<Tokens>();
      var own = new ArrayList<List<Tokens.Run>>();
      for (var each : returned) {
        groups.add(ofGroup(rank / sharing, each.tokens()));
        own.add(each.tokens().apply(owner).runs());
      }
      int most = own.stream().mapToInt(List::size).max().orElse(0);
      for (int i = 0; i < most; i++) {
        for (int j = 0; j < returned.size(); j++) {
          if (i < own.get(j).size()) {
            var run = own.get(j).get(i);
            var from = returned.get(j).of(split).on(rank, rows(groups.get(j), run));
            var into = part(returned.get(j).all(), owner, Slice.rows(run), split, from);
            moves.add(new Move(from, into));
          }
        }
      }
      return moves;
    }
  }
}
