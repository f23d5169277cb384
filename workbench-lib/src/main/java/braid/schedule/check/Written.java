package braid.schedule.check;

import braid.schedule.Slice;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;

/// Rows with one value, and the step that wrote it.
record Written(Slice rows, Value value, int writer) {
  /// Returns the part within other rows.
  Written within(Slice other) {
    long start = Math.max(rows.start(), other.start());
    return new Written(new Slice(start, Math.min(rows.end(), other.end()) - start), value, writer);
  }

  /// Returns the same rows moved by `by` rows.
  Written shifted(long by) {
    return new Written(rows.shifted(by), value.moved(-by), writer);
  }

  /// Returns the same rows moved by `by` columns.
  Written shiftedColumns(long by) {
    return new Written(rows, value.movedColumns(-by), writer);
  }

  /// Returns the values of pieces, one of consecutive rows of one value.
  static Map<Slice, Value> joined(List<Written> pieces) {
    var joined = new TreeMap<Slice, Value>(Comparator.comparingLong(Slice::start));
    for (var piece : pieces) {
      long start = piece.rows().start();
      var last = joined.lastEntry();
      if (last != null && last.getKey().end() == start && last.getValue().equals(piece.value())) {
        start = last.getKey().start();
        joined.remove(last.getKey());
      }
      joined.put(new Slice(start, piece.rows().end() - start), piece.value());
    }
    return Map.copyOf(joined);
  }

  /// Sums several lists of pieces of the same rows, where they overlap.
  static List<Written> sum(List<List<Written>> all, int writer) {
    return combined(all, writer, Value::sum);
  }

  /// Combines several lists of pieces of the same rows, where they overlap.
  static List<Written> combined(
      List<List<Written>> all, int writer, Function<List<Value>, Value> combine) {
    var cuts = new TreeSet<Long>();
    all.forEach(
        pieces ->
            pieces.forEach(
                piece -> {
                  cuts.add(piece.rows().start());
                  cuts.add(piece.rows().end());
                }));
    var sums = new ArrayList<Written>();
    var next = new int[all.size()];
    long start = cuts.first();
    for (long end : cuts.tailSet(start, false)) {
      var values = new ArrayList<Value>();
      for (int i = 0; i < next.length; i++) {
        while (all.get(i).get(next[i]).rows().end() <= start) {
          next[i]++;
        }
        values.add(all.get(i).get(next[i]).value());
      }
      sums.add(new Written(new Slice(start, end - start), combine.apply(values), writer));
      start = end;
    }
    return sums;
  }
}
