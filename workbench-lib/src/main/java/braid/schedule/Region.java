package braid.schedule;

import braid.model.BraidException;

/// Consecutive rows of a buffer on one rank; there may be none.
public record Region(Buffer buffer, int rank, long row, long rows) {
  public Region {
    if (rank < 0 || rank >= buffer.shapes().size()) {
      throw new BraidException(
          "a region's rank must be 0..%d but was %d of `%s`"
              .formatted(buffer.shapes().size() - 1, rank, buffer));
    }
    if (row < 0 || rows < 0 || row + rows > buffer.rows(rank)) {
      throw new BraidException(
          "a region must lie in rows 0..%d of `%s` on rank %d but was %d rows from %d on"
              .formatted(buffer.rows(rank) - 1, buffer, rank, rows, row));
    }
  }

  public Slice slice() {
    return new Slice(row, rows);
  }

  public boolean isEmpty() {
    return rows == 0;
  }

  public long columns() {
    return buffer.columns(rank);
  }

  public long bytes() {
    return rows * columns() * buffer.dtype().bytes();
  }

  public boolean overlaps(Region other) {
    return rank == other.rank
        && buffer.name().equals(other.buffer.name())
        && slice().overlaps(other.slice());
  }

  /// Formats it, such as `input@1[0..63]`.
  @Override
  public String toString() {
    return isEmpty()
        ? "%s@%d[]".formatted(buffer, rank)
        : "%s@%d[%d..%d]".formatted(buffer, rank, row, row + rows - 1);
  }
}
