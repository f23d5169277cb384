package braid.schedule;

import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.ChunkOrder;
import braid.model.ContextParallel;
import braid.model.ContextParallel.Method;
import braid.model.DType;
import braid.schedule.AttentionPlanner.Piece;
import braid.schedule.Buffer.Shape;
import braid.schedule.GradientBlocks.Queries;
import braid.schedule.Step.Move;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.SequencedSet;
import java.util.function.IntToLongFunction;

/// Plans the backward pass of attention over a divided sequence. Every rank fetches the keys and
/// values that its queries see, as in the forward pass, and computes the gradients of its queries.
/// It also computes the gradients of the fetched keys and values by its queries, and sends them
/// back to their owner, chunk by chunk: a parcel. The owner adds all parcels to the gradients by
/// its own queries.
///
/// All sums are in fp32 and in an order that the schedule fixes, so that every run has the same
/// result to the last bit.
final class AttentionGradientPlanner {
  private final AttentionSpec spec;
  private final ContextParallel how;
  private final int ranks;

  /// True if a unit is a chunk of one rank; false if it is a chunk of all ranks.
  private final boolean ring;

  /// Divides keys and values into units.
  private final AttentionPlanner forward;

  private final Schedule.Builder builder;
  private final Handshake handshake;

  private final Buffer query;
  private final Buffer output;
  private final Buffer lse;
  private final Buffer outputGradient;
  private final Buffer queryGradient;
  private final KeyValue kv;
  private final KeyValue gradients;

  /// Sums of the gradients of this rank's keys and values.
  private final KeyValue sums;

  /// Gradients of the query by the keys of each lane.
  private final List<Buffer> queryGradients = new ArrayList<>();

  /// Fetched keys and values, and their gradients by this rank's queries, by slot.
  private final List<KeyValue> fetched = new ArrayList<>();

  private final List<KeyValue> parts = new ArrayList<>();
  private final Parcels parcels;

  private final Lane comm;
  private final Lane back;
  private final Lane adder;
  private final List<Lane> lanes;

  AttentionGradientPlanner(AttentionGradientSpec gradient, ContextParallel how, int ranks) {
    this.spec = gradient.of();
    this.how = how;
    this.ranks = ranks;
    this.ring = how.method() == Method.RING;
    this.forward = new AttentionPlanner(spec, how, ranks);
    this.builder = Schedule.on(new Goal.AttentionGradient(gradient, how), ranks);
    this.handshake = new Handshake(builder, ranks, how.splits());
    query = builder.local(Part.QUERY);
    kv = new KeyValue(builder.symmetric(Part.KEY), builder.symmetric(Part.VALUE));
    output = builder.local(Part.OUTPUT);
    lse = builder.local(Part.LSE);
    outputGradient = builder.local(Part.OUTPUT_GRADIENT);
    queryGradient = builder.local(Part.QUERY_GRADIENT);
    gradients = new KeyValue(builder.local(Part.KEY_GRADIENT), builder.local(Part.VALUE_GRADIENT));
    boolean direct = spec.dtype() == DType.FP32;
    sums = direct ? gradients : wide("sum of ", "", gradients, kv.key().shapes());
    for (int lane = 0; lane < how.streams(); lane++) {
      queryGradients.add(
          lane == 0 && direct ? queryGradient : wide("query gradient " + lane, query.shapes()));
    }
    var rows = shapes(forward::fetchedRows);
    for (int slot = 0; slot < (ring ? how.streams() + 1 : 1); slot++) {
      fetched.add(
          new KeyValue(
              builder.add(new Buffer("fetched key " + slot, spec.dtype(), rows, false, false)),
              builder.add(new Buffer("fetched value " + slot, spec.dtype(), rows, false, false))));
      parts.add(wide("part of ", " " + slot, gradients, rows));
    }
    parcels = new Parcels(builder, how, ranks, forward::pieces, kv.key()::columns);
    comm = AttentionPlanner.communicationLane(builder, "comm", how);
    back = AttentionPlanner.communicationLane(builder, "return", how);
    adder = builder.lane("add", Lane.Role.COMPLETION);
    lanes = AttentionPlanner.attentionLanes(builder, how);
  }

  Schedule plan() {
    return builder.steps(program -> new OfRank(program).write());
  }

  private KeyValue wide(String prefix, String suffix, KeyValue like, List<Shape> shapes) {
    return new KeyValue(
        wide(prefix + like.key() + suffix, shapes), wide(prefix + like.value() + suffix, shapes));
  }

  private Buffer wide(String name, List<Shape> shapes) {
    return builder.add(new Buffer(name, DType.FP32, shapes, false, false));
  }

  /// Returns shapes with the columns of keys.
  private List<Shape> shapes(IntToLongFunction rows) {
    return Schedule.Builder.shapes(
        ranks, rank -> new Shape(rows.applyAsLong(rank), kv.key().columns(rank)));
  }

  /// The steps of one rank.
  private final class OfRank {
    private final Program program;
    private final int rank;
    private final Tokens tokens;
    private final Handshake.OfRank signals;
    private final Parcels.OfRank returned;
    private final List<List<Piece>> units;

    /// Gradients of the query by the keys of each lane.
    private final List<GradientBlocks> blocks;

    OfRank(Program program) {
      this.program = program;
      this.rank = program.rank();
      this.tokens = Tokens.of(spec, ranks, rank);
      this.signals = handshake.of(program);
      this.returned = parcels.of(program, signals);
      this.units = forward.units(rank);
      this.blocks =
          queryGradients.stream()
              .map(
                  gradient ->
                      new GradientBlocks(
                          program,
                          spec,
                          tokens,
                          new Queries(query, output, lse, outputGradient, gradient)))
              .toList();
    }

    /// A ring: while a chunk is attended to, the next is fetched, and the gradients of the one
    /// before travel back.
    ///
    /// Rank 3 of 4, `causalAttentionBackward`, `ring()`:
    ///
    /// ```
    /// comm      | fetch 1 @2   > fetch 2 @1 > fetch 3 @0 >
    ///           ^ begun @2     ^ begun @1   ^ begun @0
    /// return                                | send 1 @2  > send 2 @1  > | send 3 @0 >
    ///                                                                   ^ free 0 @0
    /// attend-0  | backward own | backward 1 | backward 2 | backward 3 |
    /// ```
    ///
    /// The owner adds what arrives.
    ///
    /// Rank 0 of 4, `causalAttentionBackward`, `ring()`:
    ///
    /// ```
    /// comm      >
    ///                              ^ read @all
    /// add                          | sum 1 | sum 1 > sum 2 | sum 2 | sum 3 | sum 3 |
    ///                              ^ landed 0 @1   ^ landed 0 @2   ^ landed 0 @3
    /// attend-0  | backward own |
    /// ```
    ///
    /// An all-gather.
    ///
    /// Rank 2 of 3, `causalAttentionBackward`, `allGatherKv()`:
    ///
    /// ```
    /// comm      | fetch 1      >
    ///           ^ begun @all
    /// return                                | send 1 @1 > send 1 @0 >
    /// attend-0  | backward own | backward 1 |
    /// ```
    ///
    /// First all fetches, then all computation, then all that travels back.
    ///
    /// Rank 2 of 3, `causalAttentionBackward`, `unfused()`:
    ///
    /// ```
    /// comm      | fetch 1 >
    ///           ^ begun @all
    /// return                                          | send 1 @1 > send 1 @0 >
    /// attend-0            | backward own | backward 1 |
    /// ```
    void write() {
      var peers = new Neighbors(rank, ranks, ChunkOrder.NEXT_FIRST).peers();
      // They read this rank's keys and values, and write to its inbox.
      var readers = peers.stream().filter(peer -> forward.fetches(peer, rank)).toList();
      readers.forEach(reader -> signals.begin(comm, reader));
      var first = lanes.getFirst();
      if (how.method() == Method.UNFUSED) {
        for (int unit = 0; unit < units.size(); unit++) {
          fetch(unit);
        }
        if (!units.isEmpty()) {
          program.after(first, Step.NO_CHUNK, comm);
        }
        attendOwn();
        for (int unit = 0; unit < units.size(); unit++) {
          attend(unit);
        }
        int done = program.mark(first, Step.NO_CHUNK);
        program.after(back, Step.NO_CHUNK, done);
        for (int unit = 0; unit < units.size(); unit++) {
          send(unit);
        }
        add(done);
      } else {
        attendOwn();
        int own = program.mark(first, 0);
        var done = new int[units.size()];
        var sent = new int[units.size()];
        for (int unit = 0; unit < units.size(); unit++) {
          int before = unit - fetched.size();
          boolean reuses = ring && before >= 0;
          if (reuses) {
            program.after(comm, unit + 1, done[before]);
          }
          fetch(unit);
          var lane = lane(unit);
          program.after(lane, unit + 1, program.mark(comm, unit + 1));
          if (reuses) {
            program.after(lane, unit + 1, sent[before]);
          }
          attend(unit);
          done[unit] = program.mark(lane, unit + 1);
          program.after(back, unit + 1, done[unit]);
          send(unit);
          sent[unit] = program.mark(back, unit + 1);
        }
        add(own);
      }
      merge();
      readers.forEach(reader -> signals.awaitRead(comm, reader));
    }

    private Lane lane(int unit) {
      return lanes.get((unit + 1) % lanes.size());
    }

    private int slot(int unit) {
      return unit % fetched.size();
    }

    private void fetch(int unit) {
      var moves = new ArrayList<Move>();
      var sources = sources(unit);
      for (var piece : units.get(unit)) {
        signals.awaitBegun(comm, piece.source());
        moves.addAll(
            kv.moves(
                piece.source(),
                piece.run().rows(piece.positions()),
                fetched.get(slot(unit)),
                rank,
                forward.fetchedRows(units.get(unit), piece)));
      }
      program.copy(comm, unit + 1, moves);
      // Each source learns of the last unit that reads its memory.
      for (int later = unit + 1; later < units.size(); later++) {
        sources.removeAll(sources(later));
      }
      sources.forEach(source -> signals.read(comm, source));
    }

    /// Returns the owners of a unit's pieces, in order.
    private SequencedSet<Integer> sources(int unit) {
      var sources = new LinkedHashSet<Integer>();
      units.get(unit).forEach(piece -> sources.add(piece.source()));
      return sources;
    }

    private void attendOwn() {
      for (var own : tokens.runs()) {
        blocks.getFirst().attend(lanes.getFirst(), 0, own, kv, sums);
      }
    }

    private void attend(int unit) {
      var lane = lane(unit);
      for (var block : forward.blocks(units.get(unit))) {
        blocks
            .get(lanes.indexOf(lane))
            .attend(lane, unit + 1, block, fetched.get(slot(unit)), parts.get(slot(unit)));
      }
    }

    /// Sends the parcels of a unit to their owners.
    private void send(int unit) {
      for (int owner : sources(unit)) {
        returned.send(
            back,
            unit + 1,
            owner,
            parcel -> units.get(unit).contains(parcel.pieces().getFirst()),
            parts.get(slot(unit)),
            piece -> forward.fetchedRows(units.get(unit), piece));
      }
    }

    /// Adds all parcels to the sums of this rank's keys and values; rounds the sums to their type.
    ///
    /// @param own mark after the gradients by this rank's queries
    private void add(int own) {
      program.after(adder, Step.NO_CHUNK, own);
      var _ = returned.add(adder, _ -> true, sums, own);
      if (!sums.equals(gradients)) {
        round(sums.key(), gradients.key());
        round(sums.value(), gradients.value());
      }
    }

    private void round(Buffer from, Buffer to) {
      program.reduce(adder, Step.NO_CHUNK, List.of(from.on(rank)), to.on(rank), Finish.NONE);
    }

    /// Adds the gradients of the query by the keys of all lanes; rounds them to their type.
    private void merge() {
      var first = lanes.getFirst();
      for (int lane = 1; lane < lanes.size(); lane++) {
        program.after(first, Step.NO_CHUNK, lanes.get(lane));
      }
      for (var queries : tokens.runs()) {
        var all = new ArrayList<Region>();
        for (int lane = 0; lane < lanes.size(); lane++) {
          if (blocks.get(lane).hasBegun(queries)) {
            all.add(queryGradients.get(lane).on(rank, queries.rows()));
          }
        }
        var result = queryGradient.on(rank, queries.rows());
        if (!all.equals(List.of(result))) {
          program.reduce(first, Step.NO_CHUNK, all, result, Finish.NONE);
        }
      }
    }
  }
}
