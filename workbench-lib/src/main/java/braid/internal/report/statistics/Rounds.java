package braid.internal.report.statistics;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.function.IntConsumer;

/// Measures several candidates in rounds: each once a round, in an order that a seed shuffles anew
/// every round, so that neither a drift of the machine nor a neighbour in the order favours one.
/// Ranks that share the seed share the order.
public record Rounds(int repeats, long seed) {

  /// Something whose time can be taken, in nanoseconds.
  public interface Candidate {
    long nanos();
  }

  /// @param progress is told before each measurement which candidate comes
  /// @return a row for each candidate, a column for each round
  public long[][] measure(List<? extends Candidate> candidates, IntConsumer progress) {
    var nanos = new long[candidates.size()][repeats];
    var random = new Random(seed);
    for (int round = 0; round < repeats; round++) {
      for (int candidate : order(candidates.size(), random)) {
        progress.accept(candidate);
        nanos[candidate][round] = candidates.get(candidate).nanos();
      }
    }
    return nanos;
  }

  private static List<Integer> order(int candidates, Random random) {
    var order = new ArrayList<Integer>();
    for (int candidate = 0; candidate < candidates; candidate++) {
      order.add(candidate);
    }
    Collections.shuffle(order, random);
    return order;
  }
}
