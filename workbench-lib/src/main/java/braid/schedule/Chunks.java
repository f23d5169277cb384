package braid.schedule;

import java.util.List;

/// The rows of each rank's part, and the chunks in which they travel.
///
/// @param total rows of all parts
/// @param boundaries rows at which parts, or the whole, are cut, from 0 to the end of the largest;
///   none to cut evenly
/// @param ofWhole whether the whole is cut and each chunk divided among the parts; else each part
///   is cut
record Chunks(long total, int parts, int count, List<Integer> boundaries, boolean ofWhole) {
  /// Rows of a part that travel in that chunk; there may be none.
  Slice rows(int part, int chunk) {
    return ofWhole
        ? cut(new Slice(0, total), chunk).part(parts, part)
        : cut(Slice.of(total, parts, part), chunk);
  }

  /// Rows of all parts in that chunk of the whole.
  Slice all(int chunk) {
    return cut(new Slice(0, total), chunk);
  }

  private Slice cut(Slice range, int chunk) {
    if (boundaries.isEmpty()) {
      return range.part(count, chunk);
    }
    long start = Math.min(boundaries.get(chunk), range.length());
    long end = Math.min(boundaries.get(chunk + 1), range.length());
    return new Slice(range.start() + start, end - start);
  }

  /// A part whose rows follow each other.
  Slice part(int part) {
    return Slice.of(total, parts, part);
  }

  /// Rows of a part before that chunk's, where a part's rows are kept without gaps.
  long offset(int part, int chunk) {
    long rows = 0;
    for (int before = 0; before < chunk; before++) {
      rows += rows(part, before).length();
    }
    return rows;
  }

  /// Whether a part has rows.
  boolean has(int part) {
    return offset(part, count) > 0;
  }

  /// Rows of the largest part.
  long longest() {
    long longest = 0;
    for (int part = 0; part < parts; part++) {
      longest = Math.max(longest, offset(part, count));
    }
    return longest;
  }
}
