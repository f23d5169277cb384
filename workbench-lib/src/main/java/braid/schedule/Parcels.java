package braid.schedule;

import braid.model.ChunkOrder;
import braid.model.ContextParallel;
import braid.model.ContextParallel.Method;
import braid.model.DType;
import braid.schedule.AttentionPlanner.Piece;
import braid.schedule.Buffer.Shape;
import braid.schedule.Step.Move;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.function.IntToLongFunction;
import java.util.function.Predicate;
import java.util.stream.IntStream;

/// Gradients of keys and values that travel back to their owners, in fp32: what each rank sends, in
/// which order it arrives, and where in the owner's inbox.
///
/// The inbox has [#SLOTS] slots. The sender of a parcel waits until the owner has added the parcel
/// before it in the slot. No rank waits for another in a circle: all ranks send and add by the
/// distance of sender and owner, then by chunk, or by chunk, then by distance, so a parcel only
/// waits for earlier ones in this order.
final class Parcels {
  /// Parcels in flight to one owner: one is added while the next arrives.
  static final int SLOTS = 2;

  private final Division division;
  private final int chunks;
  private final int sharing;
  private final List<List<Parcel>> arrivals;

  /// Raised by an owner to a sender, by owner and chunk: the slot of the parcel is free.
  private final Flag free;

  private final KeyValue inbox;

  /// The keys and values of an owner that a sender computes gradients of.
  interface Division {
    List<Piece> pieces(int sender, int owner, int chunk);
  }

  /// Gradients of some of the owner's keys and values by the queries of another rank.
  record Parcel(int from, int owner, int chunk, List<Piece> pieces) {
    private long rows() {
      return pieces.stream().mapToLong(Piece::length).sum();
    }
  }

  /// @param columns numbers of a key's gradient in a parcel, by rank
  Parcels(
      Schedule.Builder builder,
      ContextParallel how,
      int ranks,
      Division division,
      IntToLongFunction columns) {
    this.division = division;
    this.chunks = how.splits();
    this.sharing = how.headRanks(ranks);
    boolean bySender = how.method() == Method.RING;
    this.arrivals =
        IntStream.range(0, ranks).mapToObj(owner -> arrivals(owner, bySender, ranks)).toList();
    var shapes =
        Schedule.Builder.shapes(
            ranks, rank -> new Shape(SLOTS * room(rank), columns.applyAsLong(rank)));
    this.free = builder.flag("free", ranks * chunks);
    this.inbox =
        new KeyValue(
            new Buffer("inbox of key gradient", DType.FP32, shapes, true, false),
            new Buffer("inbox of value gradient", DType.FP32, shapes, true, false));
    // Heads of a single group of ranks have no parcels, and need no memory for them.
    if (arrivals.stream().anyMatch(parcels -> !parcels.isEmpty())) {
      builder.add(inbox.key());
      builder.add(inbox.value());
    }
  }

  private List<Parcel> arrivals(int owner, boolean bySender, int ranks) {
    var parcels = new ArrayList<Parcel>();
    // One of each group of ranks that divide heads.
    var senders =
        new Neighbors(owner / sharing, ranks / sharing, ChunkOrder.NEXT_FIRST)
            .peers().stream().map(group -> group * sharing + owner % sharing).toList();
    if (bySender) {
      for (int sender : senders) {
        for (int chunk = 0; chunk < chunks; chunk++) {
          parcels.add(parcel(sender, owner, chunk));
        }
      }
    } else {
      for (int chunk = 0; chunk < chunks; chunk++) {
        for (int sender : senders) {
          parcels.add(parcel(sender, owner, chunk));
        }
      }
    }
    parcels.removeIf(parcel -> parcel.pieces().isEmpty());
    return parcels;
  }

  private Parcel parcel(int sender, int owner, int chunk) {
    return new Parcel(sender, owner, chunk, division.pieces(sender, owner, chunk));
  }

  /// Returns the rows of the largest parcel of an owner; at least one, because no symmetric memory
  /// is empty.
  private long room(int owner) {
    return arrivals.get(owner).stream().mapToLong(Parcel::rows).max().orElse(1);
  }

  /// Returns the rows of the inbox that hold a piece of a parcel.
  ///
  /// @param arrival index of the parcel
  private Slice rows(int owner, int arrival, Piece piece) {
    return piece
        .among(arrivals.get(owner).get(arrival).pieces())
        .shifted(arrival % SLOTS * room(owner));
  }

  /// Returns the index of a parcel's word at its sender.
  private int word(Parcel parcel) {
    return parcel.owner() * chunks + parcel.chunk();
  }

  /// Returns the parcels of one rank.
  OfRank of(Program program, Handshake.OfRank signals) {
    return new OfRank(program, signals);
  }

  final class OfRank {
    private final Program program;
    private final Handshake.OfRank signals;

    private OfRank(Program program, Handshake.OfRank signals) {
      this.program = program;
      this.signals = signals;
    }

    /// Sends one of this rank's parcels to its owner.
    ///
    /// @param which true for the parcel, of those to the owner
    /// @param from gradients by this rank's queries
    /// @param rows their rows of each piece
    void send(
        Lane lane,
        int number,
        int owner,
        Predicate<Parcel> which,
        KeyValue from,
        Function<Piece, Slice> rows) {
      var all = arrivals.get(owner);
      int arrival = 0;
      while (all.get(arrival).from() != program.rank() || !which.test(all.get(arrival))) {
        arrival++;
      }
      var parcel = all.get(arrival);
      if (arrival >= SLOTS) {
        program.await(lane, parcel.chunk(), free, word(parcel), owner);
      }
      var moves = new ArrayList<Move>();
      for (var piece : parcel.pieces()) {
        moves.addAll(
            from.moves(
                program.rank(), rows.apply(piece), inbox, owner, rows(owner, arrival, piece)));
      }
      program.copy(lane, number, moves);
      signals.landed(lane, owner, program.rank(), parcel.chunk());
    }

    /// Adds some of the parcels that arrive to the gradients by this rank's queries, in order.
    ///
    /// @param own mark after those by this rank's queries
    /// @return true if there are any such parcels
    boolean add(Lane lane, Predicate<Parcel> which, KeyValue sums, int own) {
      int rank = program.rank();
      boolean added = false;
      var all = arrivals.get(rank);
      for (int arrival = 0; arrival < all.size(); arrival++) {
        var parcel = all.get(arrival);
        if (!which.test(parcel)) {
          continue;
        }
        added = true;
        program.after(lane, arrival + 1, own);
        signals.awaitLanded(lane, parcel.from(), parcel.chunk(), parcel.from());
        for (var piece : parcel.pieces()) {
          var rows = piece.run().rows(piece.positions());
          var from = rows(rank, arrival, piece);
          sum(lane, arrival + 1, sums.key().on(rank, rows), inbox.key().on(rank, from));
          sum(lane, arrival + 1, sums.value().on(rank, rows), inbox.value().on(rank, from));
        }
        if (arrival + SLOTS < all.size()) {
          var next = all.get(arrival + SLOTS);
          program.signal(lane, next.chunk(), free, word(next), next.from());
        }
      }
      return added;
    }

    private void sum(Lane lane, int chunk, Region all, Region more) {
      program.reduce(lane, chunk, List.of(all, more), all, Finish.NONE);
    }
  }
}
