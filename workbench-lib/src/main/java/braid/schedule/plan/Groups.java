package braid.schedule.plan;

import braid.model.ChunkOrder;
import braid.model.Overlap;
import java.util.List;
import java.util.stream.IntStream;

/// Groups of consecutive ranks, such as those of a host, as one of the ranks sees them. Ranks with
/// the same place in their groups exchange what crosses between the groups.
///
/// @param size ranks of a group
record Groups(int rank, int ranks, int size, ChunkOrder order) {
  static Groups of(Overlap overlap, int rank, int ranks) {
    return new Groups(rank, ranks, overlap.groupSize(ranks), overlap.order());
  }

  int count() {
    return ranks / size;
  }

  int own() {
    return rank / size;
  }

  int place() {
    return rank % size;
  }

  /// Returns the other groups, in the order in which this rank exchanges data with them.
  List<Integer> others() {
    return new Neighbors(own(), count(), order).peers();
  }

  /// Returns the other places, in the order in which this rank exchanges data with its own group.
  List<Integer> otherPlaces() {
    return new Neighbors(place(), size, order).peers();
  }

  int member(int group, int place) {
    return group * size + place;
  }

  /// Returns the rank with this rank's place in a group.
  int counterpart(int group) {
    return member(group, place());
  }

  /// Returns the ranks with this rank's place in ascending order, itself among them.
  List<Integer> counterparts() {
    return IntStream.range(0, count()).mapToObj(this::counterpart).toList();
  }

  /// Returns the ranks of a group in ascending order.
  List<Integer> members(int group) {
    return IntStream.range(0, size).mapToObj(place -> member(group, place)).toList();
  }
}
