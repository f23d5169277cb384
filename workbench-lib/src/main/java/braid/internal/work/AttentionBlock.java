package braid.internal.work;

import braid.model.AttentionSpec;
import braid.model.Tokens;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// Attention of the rows of `query` to the rows of `key` and `value`. If `continued`, the keys are
/// added to those that the result already includes. All matrices are stored by rows, those of the
/// result without gaps.
///
/// The last block of a result can write the output of all rows elsewhere, in the attention's type.
///
/// @param queries positions of rows of the query; a continued result keeps rows without one
/// @param keys positions of all rows of key and value
/// @param finished the output of the last block: it does not write that of the result then
public record AttentionBlock(
    AttentionSpec spec,
    Matrix query,
    Tokens queries,
    Matrix key,
    Matrix value,
    Tokens keys,
    Part result,
    boolean continued,
    Optional<Matrix> finished) {
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
    if (finished.isPresent() && !(continued && queries.haveAll(query.rows()))) {
      throw new IllegalArgumentException("a last block continues all rows: " + queries);
    }
  }

  /// A block of consecutive positions from `queryPosition` and `keyPosition` on.
  public AttentionBlock(
      AttentionSpec spec,
      Matrix query,
      long queryPosition,
      Matrix key,
      Matrix value,
      long keyPosition,
      Part result,
      boolean continued) {
    this(
        spec,
        query,
        Tokens.from(queryPosition, query.rows()),
        key,
        value,
        Tokens.from(keyPosition, key.rows()),
        result,
        continued,
        Optional.empty());
  }

  /// Returns the same block, added to what the result already includes.
  public AttentionBlock asContinued() {
    return new AttentionBlock(
        spec, query, queries, key, value, keys, result, /* continued= */ true, Optional.empty());
  }

  /// Returns the output that it writes.
  public Matrix output() {
    return finished.orElse(result.output());
  }

  /// Returns whether positions are consecutive on both sides.
  public boolean isConsecutive() {
    return queries.areConsecutive() && keys.areConsecutive();
  }

  /// Returns the key, counted from the first one of this block, that is the last one that the first
  /// row sees, of positions that are consecutive on both sides. The block need not have it.
  public long shift() {
    return queries.first() + spec.ahead() - keys.first();
  }

  /// Returns the first of this block's keys that a query row with a position sees.
  public int firstSeen(int row) {
    return (int) keys.rowsBefore(spec.firstSeen(queries.at(row)));
  }

  /// Returns the end of this block's keys that a query row with a position sees, exclusive.
  public int endSeen(int row) {
    return (int) keys.rowsBefore(spec.lastSeen(queries.at(row)) + 1);
  }

  /// Returns the first of this block's keys from `key` on that is not padding, or the end.
  public int skipPadding(int key) {
    return skip(key, true);
  }

  /// Returns the first key from `key` on that is padding, or the end of all keys.
  public int nextPadding(int key) {
    return skip(key, false);
  }

  private int skip(int from, boolean padding) {
    return from < key.rows() && spec.isPadding(keys.at(from)) == padding
        ? (int) keys.endOfKind(spec, spec::isPadding, from, key.rows())
        : from;
  }

  /// Returns the blocks of the sequences that are packed into it: queries and keys of one sequence
  /// each, as an attention of consecutive positions. Together they do the same, and share no rows.
  /// Queries that see no key, such as padding, have a block without keys if their result begins.
  ///
  /// @throws IllegalArgumentException if a sequence has another mask than consecutive positions
  public List<AttentionBlock> bySequence() {
    int rows = query.rows();
    boolean isOne = spec.packing().isSingle() && queries.haveAll(rows);
    if (isConsecutive() && (isOne || rows == 0)) {
      return List.of(this);
    }
    var pairs =
        Tokens.pairs(spec, queries, keys)
            .orElseThrow(
                () -> new IllegalArgumentException("one block must be divided: " + queries));
    var blocks = new ArrayList<AttentionBlock>();
    var none = new Tokens.Run(0, keys.first(), 0);
    long row = 0;
    for (var pair : pairs) {
      addEmpty(row, pair.rows().row(), none, blocks);
      blocks.add(part(pair.spec(), pair.rows(), pair.keys()));
      row = pair.rows().endRow();
    }
    addEmpty(row, rows, none, blocks);
    return blocks;
  }

  /// Rows without a key need no position, and may have none.
  private void addEmpty(long row, long end, Tokens.Run none, List<AttentionBlock> blocks) {
    if (row < end && !continued) {
      blocks.add(part(spec, new Tokens.Run(row, queries.first(), end - row), none));
    }
  }

  private AttentionBlock part(AttentionSpec mask, Tokens.Run rows, Tokens.Run keyRows) {
    int first = (int) rows.row();
    int count = (int) rows.length();
    return new AttentionBlock(
        mask,
        query.rows(first, count),
        rows.first(),
        key.rows((int) keyRows.row(), (int) keyRows.length()),
        value.rows((int) keyRows.row(), (int) keyRows.length()),
        keyRows.first(),
        new Part(result.output().rows(first, count), result.lse().rows(first, count)),
        continued);
  }

  /// Returns the row of the query at which a part of this block begins.
  public int rowOf(AttentionBlock part) {
    return rowOf(query, part.query);
  }

  /// Returns the key at which a part of this block begins.
  public int keyOf(AttentionBlock part) {
    return rowOf(key, part.key);
  }

  private static int rowOf(Matrix whole, Matrix part) {
    long bytes = (long) whole.stride() * whole.dtype().bytes();
    return (int) ((part.segment().address() - whole.segment().address()) / bytes);
  }

  /// Number of multiplications and additions.
  public long flops() {
    return Math.round(4 * Tokens.count(spec, queries, keys) * spec.heads() * spec.headSize());
  }
}
