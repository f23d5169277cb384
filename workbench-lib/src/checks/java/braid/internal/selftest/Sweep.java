package braid.internal.selftest;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ThreadLocalRandom;

/// The share of its cases that a test runs: a random one by default, so that `mvn verify` takes
/// minutes, and all cases with `-Dbraid.sweep=all`, which `mvn verify -Pall` sets.
///
/// A test that fails prints the case, or the seed: `-Dbraid.seed=…` draws the same cases.
public final class Sweep {
  public static final boolean ALL = System.getProperty("braid.sweep", "").equals("all");

  /// Seed of what is drawn; random by default.
  public static final long SEED =
      Long.getLong("braid.seed", ThreadLocalRandom.current().nextLong(1L << 32));

  private Sweep() {}

  /// Returns one of `interval` cases, at random and in order; at least one.
  public static <T> List<T> oneOf(int interval, List<T> cases) {
    if (ALL) {
      return cases;
    }
    var random = new SplittableRandom(SEED + cases.size());
    var drawn = new ArrayList<T>();
    for (int i = 0; i < cases.size(); i += interval) {
      drawn.add(cases.get(random.nextInt(i, Math.min(i + interval, cases.size()))));
    }
    return drawn;
  }

  /// Returns the number of repetitions.
  public static int times(int few, int all) {
    return ALL ? all : few;
  }
}
