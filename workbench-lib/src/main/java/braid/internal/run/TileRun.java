package braid.internal.run;

import braid.schedule.Region;
import braid.schedule.Step.Tile;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/// Tiles of one size, evenly spaced in input and output: `count` of them from `first` on, `step`
/// rows apart. A GPU multiplies them in one call.
record TileRun(Tile first, int count, long step) {
  /// Groups tiles into runs, in one pass in the order of their rows.
  static List<TileRun> of(List<Tile> tiles) {
    var runs = new ArrayList<TileRun>();
    tiles.stream()
        .sorted(Comparator.comparingLong(tile -> tile.input().row()))
        .forEach(
            tile -> {
              if (runs.isEmpty() || !runs.getLast().continuesWith(tile)) {
                runs.add(new TileRun(tile, 1, 0));
              } else {
                var last = runs.removeLast();
                runs.add(
                    new TileRun(
                        last.first,
                        last.count + 1,
                        last.count == 1 ? gap(last.first.input(), tile.input()) : last.step));
              }
            });
    return runs;
  }

  private static long gap(Region first, Region next) {
    return next.row() - first.row();
  }

  private boolean continuesWith(Tile next) {
    long gap = gap(first.input(), next.input());
    return next.input().rows() == first.input().rows()
        && gap == gap(first.output(), next.output())
        && !first.input().buffer().transposed()
        && (count == 1 ? gap >= first.input().rows() : gap == count * step);
  }
}
