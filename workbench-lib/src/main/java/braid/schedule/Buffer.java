package braid.schedule;

import braid.model.BraidException;
import braid.model.DType;
import java.util.Collections;
import java.util.List;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/// A named array of every rank, which steps refer to: contiguous rows of numbers, or contiguous
/// columns if `transposed`. Two buffers of a schedule never share memory.
///
/// @param shapes shape per rank
/// @param symmetric true if other ranks can access it
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

  /// Returns a buffer of the same shape on every rank.
  public static Buffer of(
      String name, DType dtype, int ranks, long rows, long columns, boolean symmetric) {
    return new Buffer(
        name, dtype, Collections.nCopies(ranks, new Shape(rows, columns)), symmetric, false);
  }

  /// Returns shapes by rank.
  public static List<Shape> shapes(int ranks, IntFunction<Shape> shape) {
    return IntStream.range(0, ranks).mapToObj(shape).toList();
  }

  /// Returns the rows of one rank's array.
  public long rows(int rank) {
    return shape(rank).rows();
  }

  public long columns(int rank) {
    return shape(rank).columns();
  }

  private Shape shape(int rank) {
    if (rank < 0 || rank >= shapes.size()) {
      throw new BraidException(
          "the rank of buffer `%s` must be 0..%d but was %d; leave out steps with ranks that the schedule does not have, or start more ranks"
              .formatted(name, shapes.size() - 1, rank));
    }
    return shapes.get(rank);
  }

  /// Returns the bytes of one rank's array.
  public long bytes(int rank) {
    return rows(rank) * columns(rank) * dtype.bytes();
  }

  /// Returns the bytes of the largest rank's array: symmetric memory has the same size on every
  /// rank.
  public long mostBytes() {
    long most = 0;
    for (int rank = 0; rank < shapes.size(); rank++) {
      most = Math.max(most, bytes(rank));
    }
    return most;
  }

  /// Returns all rows of a rank.
  public Region on(int rank) {
    return new Region(this, rank, 0, rows(rank));
  }

  /// Returns some rows of a rank.
  public Region on(int rank, Slice rows) {
    return new Region(this, rank, rows.start(), rows.length());
  }

  /// Returns some columns of some rows of a rank.
  public Region on(int rank, Slice rows, Slice columns) {
    return on(rank, rows).columns(columns);
  }

  @Override
  public String toString() {
    return name;
  }
}
