package braid.internal.work;

import braid.model.AttentionSpec;
import java.util.ArrayList;
import java.util.List;

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

  /// Returns the same block, added to what the result already includes.
  public AttentionBlock asContinued() {
    return new AttentionBlock(
        spec, query, queryPosition, key, value, keyPosition, result, /* continued= */ true);
  }

  /// Returns the first of this block's keys that a query row sees.
  public int firstSeen(int row) {
    return (int) Math.max(0, spec.firstSeen(queryPosition + row) - keyPosition);
  }

  /// Returns the end of this block's keys that a query row sees, exclusive.
  public int endSeen(int row) {
    return (int) Math.min(key.rows(), spec.lastSeen(queryPosition + row) + 1 - keyPosition);
  }

  /// Returns the first of this block's keys from `key` on that is not padding, or a later end.
  public int skipPadding(int key) {
    return (int) (spec.packing().skipPadding(keyPosition + key) - keyPosition);
  }

  /// Returns the first key from `key` on that is padding, or the end of all keys.
  public int nextPadding(int key) {
    return (int) (spec.packing().nextPadding(keyPosition + key) - keyPosition);
  }

  /// Returns the blocks of the sequences that are packed into it: queries and keys of one sequence
  /// each, which causality and window alone mask. Together they do the same. Queries that see no
  /// key, such as padding, have a block without keys if their result begins.
  public List<AttentionBlock> bySequence() {
    var packing = spec.packing();
    if (packing.isSingle() || query.rows() == 0) {
      return List.of(this);
    }
    var blocks = new ArrayList<AttentionBlock>();
    long end = queryPosition + query.rows();
    for (int i = packing.at(queryPosition); i <= packing.at(end - 1); i++) {
      long tokensEnd = packing.end(i);
      var keys =
          new Range(
              Math.max(keyPosition, packing.start(i)),
              Math.min(keyPosition + key.rows(), tokensEnd));
      add(
          new Range(Math.max(queryPosition, packing.start(i)), Math.min(end, tokensEnd)),
          keys,
          blocks);
      add(
          new Range(Math.max(queryPosition, tokensEnd), Math.min(end, packing.padded().get(i + 1))),
          new Range(keyPosition, keyPosition),
          blocks);
    }
    return blocks;
  }

  /// Positions from `start` to before `end`.
  private record Range(long start, long end) {
    boolean isEmpty() {
      return start >= end;
    }

    Matrix of(Matrix matrix, long position) {
      return isEmpty()
          ? matrix.rows(0, 0)
          : matrix.rows((int) (start - position), (int) (end - start));
    }
  }

  private void add(Range queries, Range keys, List<AttentionBlock> blocks) {
    if (queries.isEmpty() || (keys.isEmpty() && continued)) {
      return;
    }
    blocks.add(
        new AttentionBlock(
            spec,
            queries.of(query, queryPosition),
            queries.start,
            keys.of(key, keyPosition),
            keys.of(value, keyPosition),
            keys.isEmpty() ? keyPosition : keys.start,
            new Part(
                queries.of(result.output(), queryPosition),
                queries.of(result.lse(), queryPosition)),
            continued));
  }

  /// Number of multiplications and additions.
  public long flops() {
    double pairs =
        spec.pairs(
            queryPosition, queryPosition + query.rows(), keyPosition, keyPosition + key.rows());
    return Math.round(4 * pairs * spec.heads() * spec.headSize());
  }
}
