package braid.natives.cublasmp;

import braid.natives.cublasmp.CublasMp.Operation;
import braid.natives.cublasmp.CublasMp.Shape;

/// A product as cuBLASMp sees it. Its matrices are column-major, so it computes the transposed
/// output from the transposed operands: `output^T = weight^T * input^T`. Nothing is copied, since a
/// row-major matrix is its column-major transpose.
///
/// Sizes are those of all ranks. A matrix is divided into blocks, which go to the ranks of a grid
/// in turn. A grid is a column or a row of ranks, so it divides the rows or the columns of a
/// matrix. The other dimension is one block, or is divided as in the operand that it is multiplied
/// with.
///
/// @param features columns of the row-major output
/// @param tokens rows of the row-major output
record ProductLayout(
    long features, long tokens, long depth, Matrix weight, Matrix input, Matrix output) {
  enum Grid {
    /// Ranks × 1, column-major: divides rows.
    COLUMN,
    /// 1 × ranks, row-major: divides columns.
    ROW
  }

  /// A column-major matrix.
  ///
  /// @param lead distance of its columns in this rank's memory, in elements
  record Matrix(long rows, long columns, long blockRows, long blockColumns, long lead, Grid grid) {}

  /// @throws IllegalArgumentException if the rows cannot be divided among the ranks
  static ProductLayout of(Shape shape, int ranks) {
    long n = shape.rows();
    long part = shape.columns();
    long slice = shape.depth();
    if (shape.operation() != Operation.ALL_REDUCE && n % ranks != 0) {
      throw new IllegalArgumentException(
          "rows of %s must be a multiple of the %d ranks but were %d"
              .formatted(shape.operation(), ranks, n));
    }
    return switch (shape.operation()) {
      case ALL_GATHER -> {
        long m = ranks * part;
        yield new ProductLayout(
            m,
            n,
            slice,
            shape.weightTransposed()
                ? new Matrix(slice, m, slice, part, slice, Grid.ROW)
                : new Matrix(m, slice, part, slice, part, Grid.COLUMN),
            new Matrix(slice, n, slice, n / ranks, slice, Grid.ROW),
            new Matrix(m, n, part, n / ranks, part, Grid.COLUMN));
      }
      case REDUCE_SCATTER, ALL_REDUCE -> {
        long k = ranks * slice;
        // An all-reduce has one copy of the output per rank, side by side.
        long share = shape.operation() == Operation.ALL_REDUCE ? n : n / ranks;
        yield new ProductLayout(
            part,
            n,
            k,
            shape.weightTransposed()
                ? new Matrix(k, part, slice, part, slice, Grid.COLUMN)
                : new Matrix(part, k, part, slice, part, Grid.ROW),
            new Matrix(k, n, slice, share, slice, Grid.COLUMN),
            new Matrix(part, share * ranks, part, share, part, Grid.ROW));
      }
    };
  }
}
