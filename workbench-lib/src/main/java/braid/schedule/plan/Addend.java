package braid.schedule.plan;

import braid.model.Overlap;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/// A part of a sum: one of a rank, or itself a sum, which is rounded to the type sent since it is
/// passed on. Bits depend on the order of the parts.
public sealed interface Addend {
  record OfRank(int rank) implements Addend {}

  record Sum(List<Addend> parts) implements Addend {}

  /// Returns the sum of all ranks' parts in their order, rounded once.
  static Sum inOrder(int ranks) {
    return new Sum(IntStream.range(0, ranks).<Addend>mapToObj(OfRank::new).toList());
  }

  /// Returns the sum of an owner's rows, as a method adds it. A ring adds from the owner's
  /// successor around to the owner. In two levels the parts are the sums of the groups.
  static Sum of(Overlap overlap, int owner, int ranks) {
    return switch (overlap.method()) {
      case PIPELINED, DIRECT, DOUBLING, BULK, UNFUSED -> inOrder(ranks);
      case RING -> {
        var neighbors = new Neighbors(owner, ranks, overlap.order());
        Addend passed = new OfRank(neighbors.back(ranks - 1));
        for (int hops = ranks - 2; hops >= 0; hops--) {
          passed = new Sum(List.of(passed, new OfRank(neighbors.back(hops))));
        }
        yield passed instanceof Sum sum ? sum : inOrder(ranks);
      }
      case TWO_LEVEL -> {
        var groups = Groups.of(overlap, owner, ranks);
        var sums = new ArrayList<Addend>();
        for (int group = 0; group < groups.count(); group++) {
          sums.add(new Sum(groups.members(group).stream().<Addend>map(OfRank::new).toList()));
        }
        yield new Sum(sums);
      }
    };
  }
}
