package braid.schedule.plan;

import braid.model.GemmSpec;
import braid.model.GemmSpec.Pattern;
import braid.model.Method;
import braid.model.Overlap;
import braid.schedule.Slice;
import java.util.ArrayList;
import java.util.List;

/// The rows of each rank's part, and the chunks in which they travel.
///
/// @param total number of rows of all parts
/// @param boundaries rows at which each part, or the whole, is cut, from 0 to the end of the
///   largest; empty to cut evenly
/// @param ofWhole true if the whole is cut and each chunk divided among the parts; false if each
///   part is cut
record Chunks(long total, int parts, int count, List<Integer> boundaries, boolean ofWhole) {
  /// Returns the chunks of a problem's communication.
  static Chunks of(GemmSpec spec, Overlap overlap, int ranks) {
    boolean all = spec.pattern() == Pattern.GEMM_ALL_REDUCE;
    return new Chunks(
        spec.pattern().beside() ? spec.besideElements() : spec.m(),
        all && ofOneShot(overlap, ranks) ? 1 : ranks,
        overlap.splits(),
        overlap.boundaries(),
        // Whole parts are passed on; otherwise a chunk is contiguous rows, and so one gemm.
        all && !overlap.method().passesOn());
  }

  /// Returns whether an all-reduce is planned in one shot: with the direct method, or on a single
  /// rank.
  static boolean ofOneShot(Overlap overlap, int ranks) {
    return overlap.method() == Method.DIRECT || ranks == 1;
  }

  /// Returns the rows of a part in a chunk; may be empty.
  Slice rows(int part, int chunk) {
    return ofWhole
        ? cut(new Slice(0, total), chunk).part(parts, part)
        : cut(Slice.of(total, parts, part), chunk);
  }

  /// Returns the rows of some parts in a chunk, in as few slices as possible.
  List<Slice> rows(List<Integer> some, int chunk) {
    var joined = new ArrayList<Slice>();
    for (int part : some) {
      var rows = rows(part, chunk);
      boolean follows = !joined.isEmpty() && joined.getLast().end() == rows.start();
      long start = follows ? joined.removeLast().start() : rows.start();
      joined.add(new Slice(start, rows.end() - start));
    }
    return joined;
  }

  /// Returns whether all parts have equal numbers of rows, each of them contiguous.
  boolean areEqual() {
    return total % parts == 0 && (!ofWhole || (count == 1 && boundaries.isEmpty()));
  }

  /// Returns the rows of all parts in a chunk of the whole.
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

  /// Returns the rows of a part that is contiguous.
  Slice part(int part) {
    return Slice.of(total, parts, part);
  }

  /// Returns the number of a part's rows before a chunk, in memory that holds the part
  /// contiguously.
  long offset(int part, int chunk) {
    long rows = 0;
    for (int before = 0; before < chunk; before++) {
      rows += rows(part, before).length();
    }
    return rows;
  }

  /// Returns the number of rows of the largest part.
  long longest() {
    long longest = 0;
    for (int part = 0; part < parts; part++) {
      longest = Math.max(longest, offset(part, count));
    }
    return longest;
  }
}
