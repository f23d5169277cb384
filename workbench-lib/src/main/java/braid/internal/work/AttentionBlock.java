package braid.internal.work;

import braid.model.AttentionSpec;

/// Attention of the rows of `query`, at consecutive positions, to the rows of `key` and `value`, at
/// consecutive positions. If `continued`, the keys are added to those that the result already
/// includes. All matrices are stored by rows without gaps.
///
/// @param queryPosition position of the first row of the query
/// @param keyPosition position of the first row of key and value
public record AttentionBlock(
    AttentionSpec spec,
    Matrix query,
    long queryPosition,
    Matrix key,
    Matrix value,
    long keyPosition,
    Part result,
    boolean continued) {
  /// The attention of rows to some keys: the output, and the log-sum-exp (LSE) in fp32.
  public record Part(Matrix output, Matrix lse) {
    long bytes() {
      return output.bytes().byteSize() + lse.bytes().byteSize();
    }
  }

  public AttentionBlock {
    if (query.rows() != result.output().rows()
        || query.rows() != result.lse().rows()
        || key.rows() != value.rows()) {
      throw new IllegalArgumentException(
          "sizes do not fit: %s, %s, %s, %s".formatted(query, key, value, result));
    }
  }

  /// Returns the first of this block's keys that a query row sees.
  public int firstSeen(int row) {
    return (int) Math.max(0, spec.firstSeen(queryPosition + row) - keyPosition);
  }

  /// Returns the end of this block's keys that a query row sees, exclusive.
  public int endSeen(int row) {
    return (int) Math.min(key.rows(), spec.lastSeen(queryPosition + row) + 1 - keyPosition);
  }

  /// Number of multiplications and additions.
  public long flops() {
    long pairs = 0;
    for (int row = 0; row < query.rows(); row++) {
      pairs += Math.max(0, endSeen(row) - firstSeen(row));
    }
    return 4 * pairs * spec.heads() * spec.headSize();
  }
}
