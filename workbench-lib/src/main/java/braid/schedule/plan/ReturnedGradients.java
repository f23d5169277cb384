package braid.schedule.plan;

import braid.model.ChunkOrder;
import braid.model.ContextParallel;
import braid.model.ContextParallel.Method;
import braid.model.DType;
import braid.schedule.Buffer;
import braid.schedule.Buffer.Shape;
import braid.schedule.Finish;
import braid.schedule.Lane;
import braid.schedule.Program;
import braid.schedule.Schedule;
import braid.schedule.Slice;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.function.IntToLongFunction;
import java.util.function.Predicate;
import java.util.stream.IntStream;

/// Gradients of keys and values that travel back to their owners, in fp32: what each rank sends, in
/// which order it arrives, and where in the receiver's inbox. ReturnedGradients go to the owner
/// itself, or around a ring to the successor, which adds its own gradients and sends the sum on.
///
/// The inbox has [#SLOTS] slots. The sender of a message waits until the receiver has added the
/// message before it in the slot. No rank waits for another in a circle: all ranks send and add by
/// the distance of sender and owner, then by chunk, or by chunk, then by distance, so a message
/// only waits for earlier ones in this order.
final class ReturnedGradients {
  /// ReturnedGradients in flight to one rank: one is added while the next arrives.
  static final int SLOTS = 2;

  /// ReturnedGradients by receiver, in the order in which it adds them.
  private final List<List<Message>> arrivals;

  private final KeyValue inbox;

  /// The keys and values of an owner that a sender computes gradients of.
  interface Division {
    List<Piece> pieces(int sender, int owner, int chunk);
  }

  /// Gradients of some of the owner's keys and values by the queries of the sender, or of all ranks
  /// from the owner's successor to the sender.
  record Message(int from, int owner, int chunk, List<Piece> pieces) {
    private long rows() {
      return pieces.stream().mapToLong(Piece::length).sum();
    }
  }

  /// @param arrivals messages by receiver, in the order in which it adds them
  /// @param columns numbers of a key's gradient in a message, by rank
  ReturnedGradients(
      Schedule.Builder builder,
      ContextParallel how,
      List<List<Message>> arrivals,
      IntToLongFunction columns) {
    this.arrivals = arrivals;
    int ranks = arrivals.size();
    var shapes =
        Buffer.shapes(ranks, rank -> new Shape(SLOTS * room(rank), columns.applyAsLong(rank)));
    this.inbox =
        KeyValue.of(
            new Buffer("inbox of key gradient", DType.FP32, shapes, true, false),
            new Buffer("inbox of value gradient", DType.FP32, shapes, true, false));
    // Heads of a single group of ranks have no messages, and need no memory for them.
    if (arrivals.stream().anyMatch(messages -> !messages.isEmpty())) {
      builder.add(inbox.key().buffer());
      builder.add(inbox.value().buffer());
    }
  }

  /// Returns the messages to each owner, from one rank of each group that divides heads.
  static List<List<Message>> toOwners(ContextParallel how, int ranks, Division division) {
    return IntStream.range(0, ranks)
        .mapToObj(owner -> toOwner(how, ranks, owner, division))
        .toList();
  }

  private static List<Message> toOwner(
      ContextParallel how, int ranks, int owner, Division division) {
    int sharing = how.headRanks(ranks);
    var messages = new ArrayList<Message>();
    var senders =
        new Neighbors(owner / sharing, ranks / sharing, ChunkOrder.NEXT_FIRST)
            .peers().stream().map(group -> group * sharing + owner % sharing).toList();
    if (how.method() == Method.RING) {
      for (int sender : senders) {
        for (int chunk = 0; chunk < how.splits(); chunk++) {
          messages.add(new Message(sender, owner, chunk, division.pieces(sender, owner, chunk)));
        }
      }
    } else {
      for (int chunk = 0; chunk < how.splits(); chunk++) {
        for (int sender : senders) {
          messages.add(new Message(sender, owner, chunk, division.pieces(sender, owner, chunk)));
        }
      }
    }
    messages.removeIf(message -> message.pieces().isEmpty());
    return messages;
  }

  /// Returns the rows of the largest message to a rank; at least one, because no symmetric memory
  /// is empty.
  private long room(int receiver) {
    return arrivals.get(receiver).stream().mapToLong(Message::rows).max().orElse(1);
  }

  /// Returns the first row of the inbox that holds a message.
  ///
  /// @param arrival index of the message
  private long row(int receiver, int arrival) {
    return arrival % SLOTS * room(receiver);
  }

  /// Returns the messages of one rank.
  OfRank of(Program program) {
    return new OfRank(program);
  }

  final class OfRank {
    private final Program program;

    private OfRank(Program program) {
      this.program = program;
    }

    /// Sends one of this rank's messages.
    ///
    /// @param which true for the message, of those to the receiver
    /// @param from gradients by this rank's queries, and those that have arrived, in the rows that
    ///   the keys were fetched into
    void send(Lane lane, int number, int receiver, Predicate<Message> which, KeyValue from) {
      var all = arrivals.get(receiver);
      int arrival = 0;
      while (all.get(arrival).from() != program.rank() || !which.test(all.get(arrival))) {
        arrival++;
      }
      var moved = new ArrayList<KeyValue.Rows>();
      long row = row(receiver, arrival);
      for (var piece : all.get(arrival).pieces()) {
        moved.add(new KeyValue.Rows(piece.fetchedRows(), new Slice(row, piece.length())));
        row += piece.length();
      }
      var moves = from.moves(program.rank(), moved, inbox, receiver);
      program.round(arrival).copy(lane, number, moves).round(0);
    }

    /// Adds some of the messages that arrive to the gradients by this rank's queries, in order.
    ///
    /// @param sums gradients by this rank's queries
    /// @param rows their rows of each piece
    /// @param begun whether there are any of a piece
    void add(
        Lane lane,
        Predicate<Message> which,
        KeyValue sums,
        Function<Piece, Slice> rows,
        Predicate<Piece> begun) {
      int rank = program.rank();
      var all = arrivals.get(rank);
      for (int arrival = 0; arrival < all.size(); arrival++) {
        var message = all.get(arrival);
        if (!which.test(message)) {
          continue;
        }
        program.round(arrival);
        var added = new ArrayList<KeyValue.Rows>();
        var first = new ArrayList<KeyValue.Rows>();
        long row = row(rank, arrival);
        for (var piece : message.pieces()) {
          var moved = new KeyValue.Rows(new Slice(row, piece.length()), rows.apply(piece));
          (begun.test(piece) ? added : first).add(moved);
          row += piece.length();
        }
        for (var each : KeyValue.Rows.joined(added)) {
          sum(lane, arrival + 1, sums.key(), inbox.key(), each);
          sum(lane, arrival + 1, sums.value(), inbox.value(), each);
        }
        program.copy(lane, arrival + 1, inbox.moves(rank, first, sums, rank)).round(0);
      }
    }

    /// Adds some of the messages that arrive to the sums of this rank's own keys and values.
    void add(Lane lane, Predicate<Message> which, KeyValue sums) {
      add(lane, which, sums, Piece::rows, _ -> true);
    }

    private void sum(Lane lane, int chunk, Panel sums, Panel more, KeyValue.Rows rows) {
      var all = sums.on(program.rank(), rows.into());
      var parts = List.of(all, more.on(program.rank(), rows.from()));
      program.reduce(lane, chunk, parts, all, Finish.NONE);
    }
  }
}
