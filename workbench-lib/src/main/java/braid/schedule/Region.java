package braid.schedule;

import braid.model.BraidException;
import braid.model.Tokens;

/// Consecutive rows of a buffer on one rank; there may be none. Copies, sums without a finish, and
/// query, key and value of attention may take consecutive columns of them; all other steps take all
/// columns.
public record Region(Buffer buffer, int rank, long row, long rows, long column, long columns) {
  public Region {
    if (row < 0 || rows < 0 || row + rows > buffer.rows(rank)) {
      throw new BraidException(
          "a region must lie in rows 0..%d of `%s` on rank %d but was %d rows from %d on"
              .formatted(buffer.rows(rank) - 1, buffer, rank, rows, row));
    }
    if (column < 0 || columns < 0 || column + columns > buffer.columns(rank)) {
      throw new BraidException(
          "a region must lie in columns 0..%d of `%s` on rank %d but was %d columns from %d on"
              .formatted(buffer.columns(rank) - 1, buffer, rank, columns, column));
    }
  }

  /// All columns of some rows.
  public Region(Buffer buffer, int rank, long row, long rows) {
    this(buffer, rank, row, rows, 0, buffer.columns(rank));
  }

  public Slice slice() {
    return new Slice(row, rows);
  }

  public Slice columnSlice() {
    return new Slice(column, columns);
  }

  /// Returns other rows of the same columns.
  public Region rows(Slice other) {
    return new Region(buffer, rank, other.start(), other.length(), column, columns);
  }

  /// Returns the rows of a run, of tokens whose row 0 is the first row of this region.
  public Region tokens(Tokens.Run run) {
    return rows(Slice.rows(run).shifted(row));
  }

  /// Returns other columns of the same rows.
  public Region columns(Slice other) {
    return new Region(buffer, rank, row, rows, other.start(), other.length());
  }

  public boolean isEmpty() {
    return rows == 0;
  }

  /// Returns whether it has all columns of its rows.
  public boolean hasAllColumns() {
    return columns == buffer.columns(rank);
  }

  public long bytes() {
    return rows * columns * buffer.dtype().bytes();
  }

  public boolean overlaps(Region other) {
    return rank == other.rank
        && buffer.name().equals(other.buffer.name())
        && slice().overlaps(other.slice())
        && columnSlice().overlaps(other.columnSlice());
  }

  /// Formats it, such as `input@1[0..63]`, or `input@1[0..63, 8..15]` with some of the columns.
  @Override
  public String toString() {
    var some = hasAllColumns() ? "" : ", %d..%d".formatted(column, column + columns - 1);
    return isEmpty()
        ? "%s@%d[]".formatted(buffer, rank)
        : "%s@%d[%d..%d%s]".formatted(buffer, rank, row, row + rows - 1, some);
  }
}
