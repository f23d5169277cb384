package braid.internal.collective;

/// Elements of a tensor that follow each other. They are counted, not cut by rows: a sum is the
/// same wherever it is cut.
record Elements(long start, long length) {
  /// A balanced part: the first `total % parts` parts have one more than the others.
  static Elements of(long total, int parts, int index) {
    long shortest = total / parts;
    long longer = total % parts;
    return new Elements(
        index * shortest + Math.min(index, longer), shortest + (index < longer ? 1 : 0));
  }

  /// How many chunks of at most so many elements it makes.
  int chunks(long most) {
    return Math.toIntExact((length + most - 1) / most);
  }

  /// The chunk of that number.
  Elements chunk(int index, long most) {
    long skipped = index * most;
    return new Elements(start + skipped, Math.min(most, length - skipped));
  }
}
