package braid.internal.run;

import braid.schedule.Region;
import braid.schedule.Step.Tile;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/// Tiles of one size, evenly spaced: `count` of them from `first` on, `inputStep` rows apart in the
/// input and `outputStep` in the output. A GPU multiplies them in one call.
record TileRun(Tile first, int count, long inputStep, long outputStep) {
  /// Groups tiles into runs, in one pass in the order of their rows.
  static List<TileRun> of(List<Tile> tiles) {
    var runs = new ArrayList<TileRun>();
    tiles.stream()
        .sorted(Comparator.comparingLong(tile -> tile.input().row()))
        .forEach(
            tile -> {
              if (runs.isEmpty() || !runs.getLast().continuesWith(tile)) {
                runs.add(new TileRun(tile, 1, 0, 0));
              } else {
                var last = runs.removeLast();
                runs.add(
                    new TileRun(
                        last.first,
                        last.count + 1,
                        last.count == 1 ? gap(last.first.input(), tile.input()) : last.inputStep,
                        last.count == 1
                            ? gap(last.first.output(), tile.output())
                            : last.outputStep));
              }
            });
    return runs;
  }

  private static long gap(Region first, Region next) {
    return next.row() - first.row();
  }

  private boolean continuesWith(Tile next) {
    long rows = first.input().rows();
    long read = gap(first.input(), next.input());
    long written = gap(first.output(), next.output());
    return next.input().rows() == rows
        && !first.input().buffer().transposed()
        && (count == 1
            ? read >= rows && written >= rows
            : read == count * inputStep && written == count * outputStep);
  }
}
