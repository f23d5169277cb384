package braid.schedule.plan;

import braid.schedule.Slice;
import braid.schedule.Tokens;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/// Keys and values that a rank fetches together: a chunk of one rank in a ring, a chunk of all
/// ranks otherwise.
///
/// @param hops number of links from the owner to the rank that they are fetched over
/// @param keys fetched positions
/// @param seen those of them that the rank's queries see
/// @param sums positions of which the sum of gradients by other ranks arrives
/// @param layout rows of all positions in a slot
record FetchedUnit(
    List<Integer> owners,
    int chunk,
    int hops,
    List<Piece> keys,
    List<Piece> seen,
    List<Piece> sums,
    Tokens layout) {
  /// Returns the owner of a chunk of one rank.
  int owner() {
    return owners.getFirst();
  }

  /// Returns the rows of a piece in a slot.
  Slice rows(Piece piece) {
    return layout.rows(piece.positions());
  }

  /// Returns the fetched keys, together where their rows are consecutive.
  List<List<Tokens.Run>> together() {
    return Tokens.groups(blocks(), _ -> true);
  }

  /// Returns the fetched keys, joined where positions and rows are consecutive.
  List<Tokens.Run> blocks() {
    var blocks = new ArrayList<Tokens.Run>();
    var pieces =
        keys.stream()
            .map(piece -> new Tokens.Run(rows(piece).start(), piece.positions()))
            .sorted(Comparator.comparingLong(Tokens.Run::row))
            .toList();
    for (var piece : pieces) {
      var block = piece;
      if (!blocks.isEmpty() && blocks.getLast().isBefore(piece)) {
        var before = blocks.removeLast();
        block =
            new Tokens.Run(
                before.row(),
                new Slice(
                    before.positions().start(),
                    before.positions().length() + piece.positions().length()));
      }
      blocks.add(block);
    }
    return blocks;
  }
}
