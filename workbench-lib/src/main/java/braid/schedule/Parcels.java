package braid.schedule;

import braid.model.ChunkOrder;
import braid.schedule.AttentionPlanner.Piece;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/// Gradients of keys and values that travel back to their owners: what each rank sends, in which
/// order it arrives, and where in the owner's inbox.
final class Parcels {
  /// Parcels in flight to one owner: one is added while the next arrives.
  static final int SLOTS = 2;

  private final AttentionPlanner forward;
  private final int splits;
  private final List<List<Parcel>> arrivals;

  /// Gradients of some of the owner's keys and values by the queries of another rank.
  record Parcel(int from, int owner, int chunk, List<Piece> pieces) {
    private long rows() {
      return pieces.stream().mapToLong(piece -> piece.positions().length()).sum();
    }
  }

  /// @param forward divides keys and values into pieces
  /// @param bySender true if all chunks of a sender arrive before those of the next
  Parcels(AttentionPlanner forward, boolean bySender, int splits, int ranks) {
    this.forward = forward;
    this.splits = splits;
    this.arrivals =
        IntStream.range(0, ranks).mapToObj(owner -> arrivals(owner, bySender, ranks)).toList();
  }

  private List<Parcel> arrivals(int owner, boolean bySender, int ranks) {
    var parcels = new ArrayList<Parcel>();
    var senders = new Neighbors(owner, ranks, ChunkOrder.NEXT_FIRST).peers();
    if (bySender) {
      for (int sender : senders) {
        for (int chunk = 0; chunk < splits; chunk++) {
          parcels.add(parcel(sender, owner, chunk));
        }
      }
    } else {
      for (int chunk = 0; chunk < splits; chunk++) {
        for (int sender : senders) {
          parcels.add(parcel(sender, owner, chunk));
        }
      }
    }
    parcels.removeIf(parcel -> parcel.pieces().isEmpty());
    return parcels;
  }

  private Parcel parcel(int sender, int owner, int chunk) {
    return new Parcel(sender, owner, chunk, forward.pieces(sender, owner, chunk));
  }

  /// Returns the parcels that an owner receives, in order.
  List<Parcel> to(int owner) {
    return arrivals.get(owner);
  }

  /// Returns the rows of an owner's inbox.
  long inboxRows(int owner) {
    return SLOTS * room(owner);
  }

  /// Returns the rows of the largest parcel of an owner; at least one, because no symmetric memory
  /// is empty.
  private long room(int owner) {
    return to(owner).stream().mapToLong(Parcel::rows).max().orElse(1);
  }

  /// Returns the rows of the inbox that hold a piece of a parcel.
  ///
  /// @param arrival index of the parcel
  Slice rows(int owner, int arrival, Piece piece) {
    long row = arrival % SLOTS * room(owner);
    for (var each : to(owner).get(arrival).pieces()) {
      if (each.equals(piece)) {
        break;
      }
      row += each.positions().length();
    }
    return new Slice(row, piece.positions().length());
  }

  /// Returns the index of a parcel's word at its sender.
  int word(Parcel parcel) {
    return parcel.owner() * splits + parcel.chunk();
  }
}
