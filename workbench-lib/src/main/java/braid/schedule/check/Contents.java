package braid.schedule.check;

import braid.schedule.Region;
import braid.schedule.Slice;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.NavigableSet;
import java.util.Objects;
import java.util.TreeMap;
import java.util.TreeSet;

/// Values of all arrays during [Flow]. The columns of an array are divided into strips where copies
/// take some of them; within a strip all columns of a row have the same value.
final class Contents {
  private final Map<Strip, NavigableMap<Long, Written>> memory = new HashMap<>();

  /// First columns of the strips of each array.
  private final Map<Array, NavigableSet<Long>> strips = new HashMap<>();

  /// One rank's array.
  private record Array(String buffer, int rank) {}

  /// Columns of an array that steps have used together: all, until a copy takes some of them.
  private record Strip(Array array, long column) {
    static Strip of(Region region) {
      return new Strip(new Array(region.buffer().name(), region.rank()), region.column());
    }
  }

  private NavigableMap<Long, Written> pieces(Region region) {
    return memory.computeIfAbsent(Strip.of(region), _ -> new TreeMap<>());
  }

  /// Divides a region into those of the strips that it consists of.
  List<Region> strips(Region region) {
    var array = Strip.of(region).array();
    var starts = strips.computeIfAbsent(array, _ -> new TreeSet<>(List.of(0L)));
    long end = region.columnSlice().end();
    divide(array, starts, region.column());
    if (end < region.buffer().columns(region.rank())) {
      divide(array, starts, end);
    }
    var parts = new ArrayList<Region>();
    for (long start : starts.tailSet(region.column())) {
      if (start < end) {
        var next = starts.higher(start);
        parts.add(
            region.columns(new Slice(start, (next == null ? end : Math.min(next, end)) - start)));
      }
    }
    return parts.isEmpty() ? List.of(region) : parts;
  }

  /// Begins a strip at a column. Its values are those of the strip that had the column: values do
  /// not depend on the column.
  private void divide(Array array, NavigableSet<Long> starts, long column) {
    if (starts.add(column)) {
      var divided = new Strip(array, Objects.requireNonNull(starts.lower(column)));
      memory.put(
          new Strip(array, column), new TreeMap<>(memory.getOrDefault(divided, new TreeMap<>())));
    }
  }

  /// Returns the pieces of a strip's region that have a value.
  List<Written> known(Region region) {
    var pieces = pieces(region);
    var rows = region.slice();
    var first = pieces.floorKey(rows.start());
    return pieces.subMap(first == null ? rows.start() : first, rows.end()).values().stream()
        .filter(piece -> piece.rows().overlaps(rows))
        .map(piece -> piece.within(rows))
        .toList();
  }

  /// Returns the rows of a strip's region without a value.
  List<Slice> gaps(Region region) {
    var gaps = new ArrayList<Slice>();
    long from = region.row();
    for (var piece : known(region)) {
      if (piece.rows().start() > from) {
        gaps.add(new Slice(from, piece.rows().start() - from));
      }
      from = piece.rows().end();
    }
    if (from < region.slice().end()) {
      gaps.add(new Slice(from, region.slice().end() - from));
    }
    return gaps;
  }

  /// Sets the value of rows of a strip.
  void put(Region region, Written piece) {
    var pieces = pieces(region);
    var rows = piece.rows();
    cut(pieces, rows.start());
    cut(pieces, rows.end());
    pieces.subMap(rows.start(), rows.end()).clear();
    pieces.put(rows.start(), piece);
  }

  private static void cut(NavigableMap<Long, Written> pieces, long at) {
    var found = pieces.floorEntry(at);
    if (found != null) {
      var piece = found.getValue();
      var rows = piece.rows();
      if (rows.start() < at && at < rows.end()) {
        pieces.put(rows.start(), piece.within(new Slice(rows.start(), at - rows.start())));
        pieces.put(at, piece.within(new Slice(at, rows.end() - at)));
      }
    }
  }
}
