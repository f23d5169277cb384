package braid.schedule.plan;

import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.Tokens;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
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
  private final List<Tokens> queries;

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

  /// @param queries queries by rank
  /// @param keys keys by rank
  /// @param gradients true if gradients travel too
  RingRoute(
      AttentionSpec spec,
      ContextParallel how,
      List<Tokens> queries,
      List<Tokens> keys,
      boolean gradients) {
    this.spec = spec;
    this.gradients = gradients;
    this.queries = queries;
    chunks =
        IntStream.range(0, keys.size())
            .mapToObj(owner -> chunks(owner, keys.get(owner), how.splits()))
            .toList();
  }

  private List<List<Stretch>> chunks(int owner, Tokens keys, int splits) {
    var all = new ArrayList<List<Stretch>>();
    var rows = new long[splits];
    IntStream.range(0, splits).forEach(_ -> all.add(new ArrayList<>()));
    for (var run : keys.runs()) {
      var stretches = stretches(owner, run);
      for (var seen : Tokens.joined(List.copyOf(stretches.keySet()))) {
        for (int chunk = 0; chunk < splits; chunk++) {
          var part = seen.part(splits, chunk);
          for (var stretch : stretches.entrySet()) {
            var both = stretch.getKey().inRows(part.row(), part.endRow());
            if (both.length() > 0) {
              var piece = new Piece(owner, both, rows[chunk]);
              all.get(chunk).add(new Stretch(piece, stretch.getValue()));
              rows[chunk] += both.length();
            }
          }
        }
      }
    }
    return all;
  }

  /// Returns the parts of an owner's run that any other rank sees, in order, each with the hops to
  /// these ranks.
  private SequencedMap<Tokens.Run, BitSet> stretches(int owner, Tokens.Run run) {
    var seen = new ArrayList<List<Tokens.Run>>();
    var borders = new TreeSet<Long>();
    for (int hops = 1; hops < queries.size(); hops++) {
      seen.add(after(owner, hops).seen(spec, run));
      for (var part : seen.getLast()) {
        borders.add(part.row());
        borders.add(part.endRow());
      }
    }
    var all = new LinkedHashMap<Tokens.Run, BitSet>();
    for (long from : borders.headSet(borders.isEmpty() ? 0L : borders.getLast())) {
      var stretch = run.inRows(from, borders.tailSet(from, false).getFirst());
      var seenAfter = new BitSet();
      for (int hops = 1; hops < queries.size(); hops++) {
        seenAfter.set(
            hops,
            seen.get(hops - 1).stream()
                .anyMatch(part -> part.row() <= from && from < part.endRow()));
      }
      if (!seenAfter.isEmpty()) {
        all.put(stretch, seenAfter);
      }
    }
    return all;
  }

  /// Returns the queries of the rank that is some hops from an owner.
  private Tokens after(int owner, int hops) {
    return queries.get((owner + hops) % queries.size());
  }

  /// Returns the rows of the largest chunk.
  long mostRows() {
    return chunks.stream()
        .flatMap(List::stream)
        .flatMap(List::stream)
        .mapToLong(stretch -> stretch.piece().fetchedRows().end())
        .max()
        .orElse(0);
  }

  /// Returns what arrives at a rank, in order: keys, or gradients alone, up to those of its own
  /// keys.
  List<FetchedUnit> units(int rank) {
    var units = new ArrayList<FetchedUnit>();
    for (int chunk = 0; chunk < chunks.getFirst().size(); chunk++) {
      for (int hops = 1; hops <= queries.size(); hops++) {
        var unit = unit(Math.floorMod(rank - hops, queries.size()), chunk, hops);
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
        pieces(all, stretch -> gradients && stretch.first() < hops));
  }

  private static List<Piece> pieces(List<Stretch> of, Predicate<Stretch> which) {
    return of.stream().filter(which).map(Stretch::piece).toList();
  }
}
