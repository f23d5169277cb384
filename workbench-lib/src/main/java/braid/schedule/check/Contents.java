package braid.schedule.check;

import braid.schedule.Region;
import braid.schedule.Slice;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;

/// Values of all arrays during [Flow]. The columns of an array are divided into strips where copies
/// take some of them; within a strip all columns of a row have the same value.
final class Contents {
  /// By array, first column of a strip and first row.
  private final Map<Array, NavigableMap<Long, NavigableMap<Long, Written>>> memory =
      new HashMap<>();

  /// One rank's array.
  record Array(String buffer, int rank) {
    static Array of(Region region) {
      return new Array(region.buffer().name(), region.rank());
    }
  }

  /// Rows with one value, and the step that wrote it.
  record Written(Piece piece, int writer) {
    private Written within(Slice rows) {
      return new Written(piece.within(rows), writer);
    }
  }

  private NavigableMap<Long, NavigableMap<Long, Written>> all(Region region) {
    return memory.computeIfAbsent(
        Array.of(region), _ -> new TreeMap<>(Map.of(0L, new TreeMap<>())));
  }

  /// Divides a region into those of the strips that it consists of.
  List<Region> strips(Region region) {
    var all = all(region);
    var columns = region.columnSlice();
    divide(all, columns.start());
    if (columns.end() < region.buffer().columns(region.rank())) {
      divide(all, columns.end());
    }
    var parts = new ArrayList<Region>();
    for (long start : all.subMap(columns.start(), columns.end()).keySet()) {
      var next = all.higherKey(start);
      long end = next == null ? columns.end() : Math.min(next, columns.end());
      parts.add(region.columns(new Slice(start, end - start)));
    }
    return parts.isEmpty() ? List.of(region) : parts;
  }

  /// Begins a strip at a column. Its values are those of the strip that had the column: values do
  /// not depend on the column.
  private static void divide(NavigableMap<Long, NavigableMap<Long, Written>> strips, long column) {
    if (!strips.containsKey(column)) {
      strips.put(column, new TreeMap<>(strips.floorEntry(column).getValue()));
    }
  }

  private NavigableMap<Long, Written> strip(Region region) {
    return all(region).floorEntry(region.column()).getValue();
  }

  /// Returns the rows of a strip's region that have a value.
  List<Written> known(Region region) {
    var strip = strip(region);
    var rows = region.slice();
    var first = strip.floorKey(rows.start());
    var known = new ArrayList<Written>();
    for (var written : strip.subMap(first == null ? rows.start() : first, rows.end()).values()) {
      if (written.piece().rows().overlaps(rows)) {
        known.add(written.within(rows));
      }
    }
    return known;
  }

  List<Piece> pieces(Region region) {
    return known(region).stream().map(Written::piece).toList();
  }

  /// Returns the rows of a strip's region without a value.
  List<Slice> gaps(Region region) {
    return Piece.gaps(region.slice(), pieces(region));
  }

  /// Sets the value of rows of a strip.
  void put(Region region, Piece piece, int writer) {
    var strip = strip(region);
    var rows = piece.rows();
    cut(strip, rows.start());
    cut(strip, rows.end());
    strip.subMap(rows.start(), rows.end()).clear();
    strip.put(rows.start(), new Written(piece, writer));
  }

  private static void cut(NavigableMap<Long, Written> strip, long row) {
    var found = strip.lowerEntry(row);
    if (found != null) {
      var rows = found.getValue().piece().rows();
      if (row < rows.end()) {
        strip.put(
            rows.start(), found.getValue().within(new Slice(rows.start(), row - rows.start())));
        strip.put(row, found.getValue().within(new Slice(row, rows.end() - row)));
      }
    }
  }
}
