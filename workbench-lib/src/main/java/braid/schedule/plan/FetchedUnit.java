package braid.schedule.plan;

import braid.model.Tokens;
import java.util.Comparator;
import java.util.List;

/// Keys and values that a rank fetches together: a chunk of one rank in a ring, a chunk of all
/// ranks otherwise.
///
/// @param hops number of links from the owner to the rank that they are fetched over
/// @param keys fetched positions
/// @param seen those of them that the rank's queries see
/// @param sums positions of which the sum of gradients by other ranks arrives
record FetchedUnit(
    List<Integer> owners,
    int chunk,
    int hops,
    List<Piece> keys,
    List<Piece> seen,
    List<Piece> sums) {
  /// Returns the owner of a chunk of one rank.
  int owner() {
    return owners.getFirst();
  }

  /// Returns the fetched keys, together where their rows are consecutive and positions rise.
  List<Tokens> together() {
    var runs =
        keys.stream()
            .map(Piece::fetched)
            .sorted(Comparator.comparingLong(Tokens.Run::row))
            .toList();
    return Tokens.groups(Tokens.joined(runs), _ -> true);
  }
}
