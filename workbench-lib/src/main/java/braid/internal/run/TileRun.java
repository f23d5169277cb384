package braid.internal.run;

import braid.schedule.Region;
import braid.schedule.Step.Tile;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/// Tiles of one size that lie evenly spaced in their input and in their output: `count` of them
/// from the first on, `step` rows apart. A GPU multiplies them in one call.
record TileRun(Tile first, int count, long step) {
  /// Those tiles in as few runs as one pass over them in the order of their rows finds.
  static List<TileRun> of(List<Tile> tiles) {
    var runs = new ArrayList<TileRun>();
    tiles.stream()
        .sorted(Comparator.comparingLong(tile -> tile.input().row()))
        .forEach(
            tile -> {
              if (runs.isEmpty() || !runs.getLast().goesOnWith(tile)) {
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

  private boolean goesOnWith(Tile next) {
    long gap = gap(first.input(), next.input());
    return next.input().rows() == first.input().rows()
        && gap == gap(first.output(), next.output())
        && !first.input().buffer().transposed()
        && (count == 1 ? gap >= first.input().rows() : gap == count * step);
  }
}
