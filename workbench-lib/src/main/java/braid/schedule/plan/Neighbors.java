package braid.schedule.plan;

import braid.model.ChunkOrder;
import java.util.ArrayList;
import java.util.List;

/// The peers of a rank: the order in which it exchanges data with them, and its position in the
/// ring.
public record Neighbors(int rank, int ranks, ChunkOrder order) {
  /// Returns the other ranks, in the order in which this one exchanges data with them.
  public List<Integer> peers() {
    var peers = new ArrayList<Integer>();
    for (int i = 1; i < ranks; i++) {
      peers.add(
          switch (order) {
            case NEXT_FIRST -> (rank + i) % ranks;
            case PREVIOUS_FIRST -> (rank + ranks - i) % ranks;
            case RANK_ORDER -> i - 1 < rank ? i - 1 : i;
          });
    }
    return peers;
  }

  /// Returns the successor in the ring; with [ChunkOrder#PREVIOUS_FIRST] the ring turns backwards.
  public int next() {
    return Math.floorMod(rank + direction(), ranks);
  }

  /// Returns the predecessor in the ring.
  public int previous() {
    return back(1);
  }

  /// Returns the rank `steps` steps back in the ring.
  public int back(int steps) {
    return Math.floorMod(rank - steps * direction(), ranks);
  }

  private int direction() {
    return order == ChunkOrder.PREVIOUS_FIRST ? -1 : 1;
  }
}
