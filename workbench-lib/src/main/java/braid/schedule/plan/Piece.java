package braid.schedule.plan;

import braid.schedule.Slice;
import braid.schedule.Tokens;
import java.util.List;

/// Consecutive positions of one owner's tokens that are communicated together.
///
/// @param source the owner
/// @param run the owner's run that has the positions
record Piece(int source, Tokens.Run run, Slice positions) {
  long length() {
    return positions.length();
  }

  /// Returns the rows of its tokens at their owner.
  Slice rows() {
    return run.rows(positions);
  }

  /// Returns the rows of a piece, if all pieces are one after another.
  Slice among(List<Piece> all) {
    long row = all.stream().takeWhile(each -> !each.equals(this)).mapToLong(Piece::length).sum();
    return new Slice(row, length());
  }
}
