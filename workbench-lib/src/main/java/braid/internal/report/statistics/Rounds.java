package braid.internal.report.statistics;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;

/// Measures candidates in rounds: each once per round, in an order that a seed shuffles for every
/// round, so that neither drift of the machine nor the preceding candidate favours one. Ranks that
/// share the seed share the order, independent of how the rounds are divided among calls.
public final class Rounds {
  private final List<? extends Candidate> candidates;
  private final long seed;
  private final Random random;
  private final List<List<Long>> nanos;

  /// A candidate whose time can be measured, in nanoseconds.
  public interface Candidate {
    long nanos();
  }

  public Rounds(List<? extends Candidate> candidates, long seed) {
    this.candidates = List.copyOf(candidates);
    this.seed = seed;
    this.random = new Random(seed);
    this.nanos =
        IntStream.range(0, candidates.size()).<List<Long>>mapToObj(_ -> new ArrayList<>()).toList();
  }

  public long seed() {
    return seed;
  }

  /// Measures additional rounds.
  ///
  /// @param progress receives the index of each candidate before it is measured
  public void measure(int rounds, IntConsumer progress) {
    for (int round = 0; round < rounds; round++) {
      for (int candidate : order(candidates.size(), random)) {
        progress.accept(candidate);
        nanos.get(candidate).add(candidates.get(candidate).nanos());
      }
    }
  }

  /// Returns one row per candidate, one column per round so far.
  public long[][] nanos() {
    return nanos.stream()
        .map(row -> row.stream().mapToLong(Long::longValue).toArray())
        .toArray(long[][]::new);
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
