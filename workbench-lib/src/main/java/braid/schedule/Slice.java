package braid.schedule;

import braid.model.BraidException;
import braid.model.Tokens;
import java.util.ArrayList;
import java.util.List;

/// Consecutive rows or elements: `length` of them from `start` on.
public record Slice(long start, long length) {
  /// Returns part `index` of `parts` balanced parts of `total`: the first `total % parts` parts
  /// have one more than the others.
  public static Slice of(long total, int parts, int index) {
    if (index < 0 || index >= parts) {
      throw new BraidException(
          "the index of one of %d parts must be 0..%d but was %d; count parts from 0"
              .formatted(parts, parts - 1, index));
    }
    long shortest = total / parts;
    long longer = total % parts;
    return new Slice(
        index * shortest + Math.min(index, longer), shortest + (index < longer ? 1 : 0));
  }

  /// Returns the rows of a run.
  public static Slice rows(Tokens.Run run) {
    return new Slice(run.row(), run.length());
  }

  /// Returns the rows from the first token to the last.
  public static Slice rows(Tokens tokens) {
    return new Slice(tokens.firstRow(), tokens.endRow() - tokens.firstRow());
  }

  /// Joins those of some ranges, in order of their starts, that overlap or follow each other.
  public static List<Slice> joined(List<Slice> ranges) {
    var all = new ArrayList<Slice>();
    for (var range : ranges) {
      if (!all.isEmpty() && all.getLast().end() >= range.start()) {
        var before = all.removeLast();
        long end = Math.max(before.end(), range.end());
        all.add(new Slice(before.start(), end - before.start()));
      } else {
        all.add(range);
      }
    }
    return all;
  }

  /// Returns the end, exclusive.
  public long end() {
    return start + length;
  }

  public boolean isEmpty() {
    return length == 0;
  }

  public boolean contains(long place) {
    return place >= start && place < end();
  }

  /// Returns whether all of another range is in this one.
  public boolean containsAll(Slice other) {
    return other.isEmpty() || (start <= other.start && other.end() <= end());
  }

  public boolean overlaps(Slice other) {
    return start < other.end() && other.start < end();
  }

  /// Returns what is in both; may be empty.
  public Slice and(Slice other) {
    long from = Math.max(start, other.start);
    return new Slice(from, Math.max(0, Math.min(end(), other.end()) - from));
  }

  /// Returns a balanced part of this range.
  public Slice part(int parts, int index) {
    return of(length, parts, index).shifted(start);
  }

  public Slice shifted(long by) {
    return new Slice(start + by, length);
  }
}
