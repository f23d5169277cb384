package braid.schedule.plan;

import braid.model.Tokens;
import braid.schedule.Slice;

/// Tokens of one owner that are communicated together.
///
/// @param source the owner
/// @param run their positions, in rows of the owner
/// @param row first of the rows that they are fetched into
record Piece(int source, Tokens.Run run, long row) {
  long length() {
    return run.length();
  }

  /// Returns their rows at the owner.
  Slice rows() {
    return Slice.rows(run);
  }

  /// Returns the rows that they are fetched into.
  Slice fetchedRows() {
    return new Slice(row, length());
  }

  /// Returns their positions, in the rows that they are fetched into.
  Tokens.Run fetched() {
    return run.atRow(row);
  }
}
