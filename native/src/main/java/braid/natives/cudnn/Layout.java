package braid.natives.cudnn;

/// Matrix of each sequence and head, with the distance of neighbors in memory, in numbers.
///
/// @param sequences number of sequences; each has up to `rows` rows, or columns if transposed
/// @param numbers numbers of all sequences in memory
record Layout(
    long sequences,
    long heads,
    long rows,
    long columns,
    long headStride,
    long rowStride,
    long columnStride,
    long numbers) {
  /// Heads one after another, rows without gaps.
  static Layout packed(long sequences, long heads, long rows, long columns) {
    return new Layout(
        sequences,
        heads,
        rows,
        columns,
        rows * columns,
        columns,
        1,
        sequences * heads * rows * columns);
  }

  /// A row per token, with the numbers of all heads.
  ///
  /// @param tokens number of rows of all sequences in memory
  static Layout ofTokens(long sequences, long tokens, long heads, long rows, long columns) {
    return new Layout(
        sequences, heads, rows, columns, columns, heads * columns, 1, tokens * heads * columns);
  }

  /// The same rows `stride` numbers apart; 0 for no gaps.
  Layout apart(long stride) {
    return new Layout(
        sequences,
        heads,
        rows,
        columns,
        headStride,
        stride == 0 ? rowStride : stride,
        columnStride,
        numbers);
  }

  /// The same numbers as the transposed matrix of each head.
  Layout transposed() {
    return new Layout(
        sequences, heads, columns, rows, headStride, columnStride, rowStride, numbers);
  }

  long[] sizes() {
    return new long[] {sequences, heads, rows, columns};
  }

  long[] strides() {
    long sequence =
        Math.max(heads * rows * columns, Math.max(rows * rowStride, columns * columnStride));
    return new long[] {sequence, headStride, rowStride, columnStride};
  }
}
