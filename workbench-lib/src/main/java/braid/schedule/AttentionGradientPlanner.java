package braid.schedule;

import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ChunkOrder;
import braid.model.ContextParallel;
import braid.model.ContextParallel.Method;
import braid.model.DType;
import braid.model.Transport;
import braid.schedule.AttentionPlanner.Piece;
import braid.schedule.Buffer.Shape;
import braid.schedule.Parcels.Parcel;
import braid.schedule.Step.Attend;
import braid.schedule.Step.Gradients;
import braid.schedule.Step.Move;
import braid.schedule.Step.Partial;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.SequencedSet;
import java.util.Set;
import java.util.function.IntToLongFunction;

/// Plans the backward pass of attention over a divided sequence. Every rank fetches the keys and
/// values that its queries see, as in the forward pass, and computes the gradients of its queries.
/// What its queries add to the gradients of fetched keys and values it sends back to their owner,
/// chunk by chunk: a parcel. The owner adds the parcels to those of its own queries.
///
/// All sums are in fp32 and in an order that the schedule fixes, so that every run has the same
/// result to the last bit. Parcels arrive in an inbox of [Parcels#SLOTS] slots. The sender of a
/// parcel waits until the owner has added the parcel before it in the slot. No rank waits for
/// another in a circle: all ranks send and add by the distance of sender and owner, then by chunk,
/// or by chunk, then by distance, so a parcel only waits for earlier ones in this order.
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

  /// Raised by an owner to a sender, by owner and chunk: the slot of the parcel is free.
  private final Flag free;

  private final Buffer query;
  private final Buffer output;
  private final Buffer lse;
  private final Buffer outputGradient;
  private final Buffer queryGradient;
  private final Pair kv;
  private final Pair gradients;

  /// Sums of the gradients of this rank's keys and values.
  private final Pair sums;

  /// Gradients of the query by the keys of each lane.
  private final List<Buffer> queryGradients = new ArrayList<>();

  /// Fetched keys and values, and their gradients by this rank's queries, by slot.
  private final List<Pair> fetched = new ArrayList<>();

  private final List<Pair> parts = new ArrayList<>();
  private final Pair inbox;

  private final Parcels parcels;

  private final Lane comm;
  private final Lane back;
  private final Lane adder;
  private final List<Lane> lanes = new ArrayList<>();

  /// Buffers of keys and of values, or of their gradients.
  private record Pair(Buffer key, Buffer value) {
    List<Move> moves(int from, Slice rows, Pair to, int at, Slice into) {
      return List.of(
          new Move(key.on(from, rows), to.key.on(at, into)),
          new Move(value.on(from, rows), to.value.on(at, into)));
    }
  }

  AttentionGradientPlanner(AttentionGradientSpec gradient, ContextParallel how, int ranks) {
    this.spec = gradient.of();
    this.how = how;
    this.ranks = ranks;
    this.ring =
        switch (how.method()) {
          case RING -> true;
          case ALL_GATHER_KV, UNFUSED -> false;
          case ULYSSES, TWO_LEVEL ->
              throw new BraidException(
                  "%s divides heads among ranks and has no backward pass; try ring() or allGatherKv()"
                      .formatted(how.method()));
        };
    this.forward = new AttentionPlanner(spec, how, ranks);
    this.builder = Schedule.on(new Goal.AttentionGradient(gradient, how), ranks);
    this.handshake = new Handshake(builder, ranks, how.splits());
    this.free = builder.flag("free", ranks * how.splits());
    query = builder.local(Part.QUERY);
    kv = new Pair(builder.symmetric(Part.KEY), builder.symmetric(Part.VALUE));
    output = builder.local(Part.OUTPUT);
    lse = builder.local(Part.LSE);
    outputGradient = builder.local(Part.OUTPUT_GRADIENT);
    queryGradient = builder.local(Part.QUERY_GRADIENT);
    gradients = new Pair(builder.local(Part.KEY_GRADIENT), builder.local(Part.VALUE_GRADIENT));
    boolean direct = spec.dtype() == DType.FP32;
    sums = direct ? gradients : wide("sum of ", "", gradients, kv.key().shapes(), false);
    for (int lane = 0; lane < how.streams(); lane++) {
      queryGradients.add(
          lane == 0 && direct
              ? queryGradient
              : wide("query gradient " + lane, query.shapes(), false));
    }
    var rows = shapes(forward::fetchedRows);
    for (int slot = 0; slot < (ring ? how.streams() + 1 : 1); slot++) {
      fetched.add(
          new Pair(
              builder.add(new Buffer("fetched key " + slot, spec.dtype(), rows, false, false)),
              builder.add(new Buffer("fetched value " + slot, spec.dtype(), rows, false, false))));
      parts.add(wide("part of ", " " + slot, gradients, rows, false));
    }
    parcels = new Parcels(forward, ring, how.splits(), ranks);
    inbox = wide("inbox of ", "", gradients, shapes(parcels::inboxRows), true);
    comm = communication("comm");
    back = communication("return");
    adder = builder.lane("add", Lane.Role.COMPLETION);
    for (int lane = 0; lane < how.streams(); lane++) {
      lanes.add(
          builder.add(
              new Lane(
                  "attend-" + lane,
                  Lane.Role.COMPUTE,
                  true,
                  Transport.COPY_ENGINE,
                  0,
                  how.workers())));
    }
  }

  Schedule plan() {
    return builder.steps(program -> new OfRank(program).write());
  }

  private Lane communication(String name) {
    return builder.add(
        new Lane(name, Lane.Role.COMMUNICATION, false, how.transport(), how.workers(), 0));
  }

  private Pair wide(
      String prefix, String suffix, Pair like, List<Shape> shapes, boolean symmetric) {
    return new Pair(
        wide(prefix + like.key() + suffix, shapes, symmetric),
        wide(prefix + like.value() + suffix, shapes, symmetric));
  }

  private Buffer wide(String name, List<Shape> shapes, boolean symmetric) {
    return builder.add(new Buffer(name, DType.FP32, shapes, symmetric, false));
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
    private final List<List<Piece>> units;

    /// Runs of queries whose gradient each lane has begun.
    private final List<Set<Tokens.Run>> begun = new ArrayList<>();

    OfRank(Program program) {
      this.program = program;
      this.rank = program.rank();
      this.tokens = Tokens.of(spec, ranks, rank);
      this.signals = handshake.of(program);
      this.units = forward.units(rank);
      lanes.forEach(_ -> begun.add(new HashSet<>()));
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
        attend(lanes.getFirst(), 0, own, kv, sums);
      }
    }

    private void attend(int unit) {
      for (var block : forward.blocks(units.get(unit))) {
        attend(lane(unit), unit + 1, block, fetched.get(slot(unit)), parts.get(slot(unit)));
      }
    }

    /// Computes the gradients of all queries that see any of some keys, and of these keys.
    private void attend(Lane lane, int chunk, Tokens.Run keys, Pair of, Pair gradients) {
      // Later queries see no earlier begin and no earlier end.
      long begunEnd = keys.positions().start();
      for (var queries : tokens.runs()) {
        // A rank's own queries begin the gradients of all of its keys, also of those without
        // effect.
        var seen =
            queries.positions().equals(keys.positions())
                ? keys.positions()
                : Tokens.seen(spec, queries, keys.positions());
        if (!seen.isEmpty()) {
          long continued = Math.clamp(begunEnd - seen.start(), 0, seen.length());
          var some = new Slice(seen.start(), continued);
          var rest = new Slice(some.end(), seen.length() - continued);
          attend(lane, chunk, queries, keys.rows(some), some.start(), of, gradients, true);
          attend(lane, chunk, queries, keys.rows(rest), rest.start(), of, gradients, false);
          begunEnd = seen.end();
        }
      }
    }

    private void attend(
        Lane lane,
        int chunk,
        Tokens.Run queries,
        Slice rows,
        long position,
        Pair of,
        Pair gradients,
        boolean continued) {
      if (rows.isEmpty()) {
        return;
      }
      int number = lanes.indexOf(lane);
      program.attendGradient(
          new Attend(
              lane,
              chunk,
              spec,
              query.on(rank, queries.rows()),
              queries.positions().start(),
              of.key().on(rank, rows),
              of.value().on(rank, rows),
              position,
              new Partial(output.on(rank, queries.rows()), lse.on(rank, queries.rows())),
              false),
          outputGradient.on(rank, queries.rows()),
          new Gradients(
              queryGradients.get(number).on(rank, queries.rows()),
              gradients.key().on(rank, rows),
              gradients.value().on(rank, rows)),
          !begun.get(number).add(queries),
          continued);
    }

    /// Sends the parcels of a unit to their owners.
    private void send(int unit) {
      for (int owner : sources(unit)) {
        var all = parcels.to(owner);
        int arrival = 0;
        while (!isOf(all.get(arrival), unit)) {
          arrival++;
        }
        var parcel = all.get(arrival);
        if (arrival >= Parcels.SLOTS) {
          program.await(back, parcel.chunk(), free, parcels.word(parcel), owner);
        }
        var moves = new ArrayList<Move>();
        for (var piece : parcel.pieces()) {
          moves.addAll(
              parts
                  .get(slot(unit))
                  .moves(
                      rank,
                      forward.fetchedRows(units.get(unit), piece),
                      inbox,
                      owner,
                      parcels.rows(owner, arrival, piece)));
        }
        program.copy(back, unit + 1, moves);
        signals.landed(back, owner, rank, parcel.chunk());
      }
    }

    private boolean isOf(Parcel parcel, int unit) {
      return parcel.from() == rank && units.get(unit).contains(parcel.pieces().getFirst());
    }

    /// Adds all parcels to the sums of this rank's keys and values; rounds the sums to their type.
    ///
    /// @param own mark after the gradients by this rank's queries
    private void add(int own) {
      program.after(adder, Step.NO_CHUNK, own);
      var all = parcels.to(rank);
      for (int arrival = 0; arrival < all.size(); arrival++) {
        var parcel = all.get(arrival);
        signals.awaitLanded(adder, parcel.from(), parcel.chunk(), parcel.from());
        for (var piece : parcel.pieces()) {
          var rows = piece.run().rows(piece.positions());
          var from = parcels.rows(rank, arrival, piece);
          sum(arrival + 1, sums.key().on(rank, rows), inbox.key().on(rank, from));
          sum(arrival + 1, sums.value().on(rank, rows), inbox.value().on(rank, from));
        }
        if (arrival + Parcels.SLOTS < all.size()) {
          var next = all.get(arrival + Parcels.SLOTS);
          program.signal(adder, next.chunk(), free, parcels.word(next), next.from());
        }
      }
      if (!sums.equals(gradients)) {
        round(sums.key(), gradients.key());
        round(sums.value(), gradients.value());
      }
    }

    private void sum(int chunk, Region all, Region more) {
      program.reduce(adder, chunk, List.of(all, more), all, Finish.NONE);
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
          if (begun.get(lane).contains(queries)) {
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
