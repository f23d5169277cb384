package braid.schedule.plan;

import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.schedule.Slice;
import braid.schedule.Tokens;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.stream.IntStream;

/// The route of keys and values around a ring. A chunk of an owner's keys goes to its successor,
/// and on from neighbor to neighbor, as far as a rank that sees any of them. The sum of their
/// gradients begins at the first rank that sees them and goes on around the ring to the owner.
///
/// All chunks with one number are on their way at once, before those with the next number. A slot
/// therefore holds one chunk, and no ranks wait for each other in a circle: a slot is free when a
/// chunk that is fewer hops from its owner, or of an earlier number, has moved on.
final class RingRoute {
  private final AttentionSpec spec;
  private final boolean gradients;
  private final List<Tokens> tokens;

  /// By owner and number.
  private final List<List<List<Stretch>>> chunks;

  /// Positions that the same ranks see.
  ///
  /// @param hops number of hops from the owner to each of these ranks
  private record Stretch(Piece piece, BitSet hops) {
    int first() {
      return hops.nextSetBit(0);
    }

    int last() {
      return hops.length() - 1;
    }
  }

  /// @param gradients true if gradients travel too
  RingRoute(AttentionSpec spec, ContextParallel how, int ranks, boolean gradients) {
    this.spec = spec;
    this.gradients = gradients;
    tokens = IntStream.range(0, ranks).mapToObj(rank -> Tokens.of(spec, ranks, rank)).toList();
    chunks = IntStream.range(0, ranks).mapToObj(owner -> chunks(owner, how.splits())).toList();
  }

  private List<List<Stretch>> chunks(int owner, int splits) {
    var stretches = stretches(owner);
    var seen =
        Slice.joined(stretches.stream().map(stretch -> stretch.piece().positions()).toList());
    var all = new ArrayList<List<Stretch>>();
    for (int chunk = 0; chunk < splits; chunk++) {
      var own = new ArrayList<Stretch>();
      for (var range : seen) {
        var part = range.part(splits, chunk);
        for (var stretch : stretches) {
          var both = stretch.piece().positions().and(part);
          if (!both.isEmpty()) {
            own.add(new Stretch(new Piece(owner, stretch.piece().run(), both), stretch.hops()));
          }
        }
      }
      all.add(own);
    }
    return all;
  }

  /// Returns the positions of an owner that any other rank sees, in order.
  private List<Stretch> stretches(int owner) {
    var all = new ArrayList<Stretch>();
    for (var run : tokens.get(owner).runs()) {
      var borders = new TreeSet<Long>();
      for (int hops = 1; hops < tokens.size(); hops++) {
        for (var seen : after(owner, hops).seen(spec, run.positions())) {
          borders.add(seen.start());
          borders.add(seen.end());
        }
      }
      for (long start : borders.headSet(borders.isEmpty() ? 0L : borders.getLast())) {
        long end = borders.tailSet(start, false).getFirst();
        var positions = new Slice(start, end - start);
        var seenAfter = new BitSet();
        for (int hops = 1; hops < tokens.size(); hops++) {
          seenAfter.set(hops, !after(owner, hops).seen(spec, positions).isEmpty());
        }
        if (!seenAfter.isEmpty()) {
          all.add(new Stretch(new Piece(owner, run, positions), seenAfter));
        }
      }
    }
    return all;
  }

  /// Returns the tokens of the rank that is some hops from an owner.
  private Tokens after(int owner, int hops) {
    return tokens.get((owner + hops) % tokens.size());
  }

  /// Returns the rows of the largest chunk.
  long mostRows() {
    return chunks.stream()
        .flatMap(List::stream)
        .mapToLong(chunk -> layout(chunk).rows())
        .max()
        .orElse(0);
  }

  /// Returns what arrives at a rank, in order: keys, or gradients alone, up to those of its own
  /// keys.
  List<FetchedUnit> units(int rank) {
    var units = new ArrayList<FetchedUnit>();
    for (int chunk = 0; chunk < chunks.getFirst().size(); chunk++) {
      for (int hops = 1; hops <= tokens.size(); hops++) {
        var unit = unit(Math.floorMod(rank - hops, tokens.size()), chunk, hops);
        if (!unit.keys().isEmpty() || !unit.sums().isEmpty()) {
          units.add(unit);
        }
      }
    }
    return units;
  }

  /// Returns a chunk at the rank that is some hops from its owner.
  FetchedUnit unit(int owner, int chunk, int hops) {
    var all = chunks.get(owner).get(chunk);
    return new FetchedUnit(
        List.of(owner),
        chunk,
        hops,
        pieces(all, stretch -> stretch.last() >= hops),
        pieces(all, stretch -> stretch.hops().get(hops)),
        pieces(all, stretch -> gradients && stretch.first() < hops),
        layout(all));
  }

  private static List<Piece> pieces(List<Stretch> of, Predicate<Stretch> which) {
    return of.stream().filter(which).map(Stretch::piece).toList();
  }

  /// Returns the rows of a chunk, on all ranks.
  private static Tokens layout(List<Stretch> chunk) {
    return Tokens.of(chunk.stream().map(stretch -> stretch.piece().positions()).toList());
  }
}
