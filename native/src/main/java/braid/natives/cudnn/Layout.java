package braid.natives.cudnn;

/// Matrix of each head, with the distance of neighbors in memory, in numbers.
record Layout(
    long heads, long rows, long columns, long headStride, long rowStride, long columnStride) {
  /// Heads one after another, rows without gaps.
  static Layout packed(long heads, long rows, long columns) {
    return new Layout(heads, rows, columns, rows * columns, columns, 1);
  }

  /// A row per token, with the numbers of all heads.
  static Layout ofTokens(long heads, long rows, long columns) {
    return new Layout(heads, rows, columns, columns, heads * columns, 1);
  }

  /// The same numbers as the transposed matrix of each head.
  Layout transposed() {
    return new Layout(heads, columns, rows, headStride, columnStride, rowStride);
  }

  /// A batch of one.
  long[] sizes() {
    return new long[] {1, heads, rows, columns};
  }

  long[] strides() {
    return new long[] {heads * rows * columns, headStride, rowStride, columnStride};
  }
}
