package braid.schedule;

import braid.model.BraidException;
import braid.model.DType;
import java.util.Collections;
import java.util.List;

/// An array that every rank has, as steps name it: rows of numbers without gaps, or columns of them
/// where it is `transposed`. Two buffers of a schedule never share memory.
///
/// @param shapes of each rank's own, by rank
/// @param symmetric whether other ranks reach it
public record Buffer(
    String name, DType dtype, List<Shape> shapes, boolean symmetric, boolean transposed) {
  /// Rows and columns of one rank's array.
  public record Shape(long rows, long columns) {
    public Shape {
      if (rows < 0 || columns < 0) {
        throw new BraidException(
            "rows and columns must be 0 or more but were %d x %d".formatted(rows, columns));
      }
    }

    @Override
    public String toString() {
      return rows + "x" + columns;
    }
  }

  public Buffer {
    if (name.isBlank()) {
      throw new BraidException("a buffer needs a name but has none; give it one, such as input");
    }
    shapes = List.copyOf(shapes);
  }

  /// An array of the same shape on every rank.
  public static Buffer of(
      String name, DType dtype, int ranks, long rows, long columns, boolean symmetric) {
    return new Buffer(
        name, dtype, Collections.nCopies(ranks, new Shape(rows, columns)), symmetric, false);
  }

  /// Rows that a rank has of it.
  public long rows(int rank) {
    return shapes.get(rank).rows();
  }

  public long columns(int rank) {
    return shapes.get(rank).columns();
  }

  /// Bytes that a rank needs for it.
  public long bytes(int rank) {
    return rows(rank) * columns(rank) * dtype.bytes();
  }

  /// The largest of any rank's: symmetric memory has room for as much on each.
  public long mostBytes() {
    long most = 0;
    for (int rank = 0; rank < shapes.size(); rank++) {
      most = Math.max(most, bytes(rank));
    }
    return most;
  }

  /// All of it on that rank.
  public Region on(int rank) {
    return new Region(this, rank, 0, rows(rank));
  }

  /// Those rows of it on that rank.
  public Region on(int rank, Slice rows) {
    return new Region(this, rank, rows.start(), rows.length());
  }

  @Override
  public String toString() {
    return name;
  }
}
