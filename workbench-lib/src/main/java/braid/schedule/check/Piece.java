package braid.schedule.check;

import braid.schedule.Region;
import braid.schedule.Slice;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.function.UnaryOperator;

/// Consecutive rows with one value.
record Piece(Slice rows, Value value) {
  /// Returns the same rows elsewhere: moved by some rows and columns.
  Piece moved(long distance, long columns) {
    return new Piece(rows.shifted(distance), value.moved(-distance, -columns));
  }

  /// Returns the values of rows after a copy to other rows and columns.
  static List<Piece> moved(List<Piece> pieces, Region from, Region to) {
    long distance = to.row() - from.row();
    return pieces.stream().map(each -> each.moved(distance, to.column() - from.column())).toList();
  }

  Piece within(Slice other) {
    return new Piece(rows.and(other), value);
  }

  static List<Piece> mapped(List<Piece> pieces, UnaryOperator<Value> change) {
    return pieces.stream().map(piece -> new Piece(piece.rows, change.apply(piece.value))).toList();
  }

  /// Joins consecutive rows of one value, so that pieces do not depend on how rows were divided.
  static List<Piece> joined(List<Piece> pieces) {
    var joined = new ArrayList<Piece>();
    var sorted =
        pieces.stream().sorted(Comparator.comparingLong(piece -> piece.rows.start())).toList();
    for (var piece : sorted) {
      long start = piece.rows.start();
      if (!joined.isEmpty()
          && joined.getLast().rows.end() == start
          && joined.getLast().value.equals(piece.value)) {
        start = joined.removeLast().rows.start();
      }
      joined.add(new Piece(new Slice(start, piece.rows.end() - start), piece.value));
    }
    return List.copyOf(joined);
  }

  static List<Piece> sum(List<List<Piece>> terms) {
    return combined(terms, Value::sum);
  }

  /// Combines several lists of pieces of the same rows, where they overlap.
  static List<Piece> combined(List<List<Piece>> all, Function<List<Value>, Value> combine) {
    var cuts = new TreeSet<Long>();
    for (var pieces : all) {
      for (var piece : pieces) {
        cuts.add(piece.rows.start());
        cuts.add(piece.rows.end());
      }
    }
    var combined = new ArrayList<Piece>();
    var next = new int[all.size()];
    long start = cuts.first();
    for (long end : cuts.tailSet(start, false)) {
      var values = new ArrayList<Value>();
      for (int i = 0; i < next.length; i++) {
        while (all.get(i).get(next[i]).rows.end() <= start) {
          next[i]++;
        }
        values.add(all.get(i).get(next[i]).value);
      }
      combined.add(new Piece(new Slice(start, end - start), combine.apply(values)));
      start = end;
    }
    return combined;
  }

  /// Returns those of some rows that no piece has; the pieces come in order.
  static List<Slice> gaps(Slice rows, List<Piece> pieces) {
    var gaps = new ArrayList<Slice>();
    long start = rows.start();
    for (var piece : pieces) {
      if (piece.rows.start() > start) {
        gaps.add(new Slice(start, piece.rows.start() - start));
      }
      start = piece.rows.end();
    }
    if (start < rows.end()) {
      gaps.add(new Slice(start, rows.end() - start));
    }
    return gaps;
  }
}
