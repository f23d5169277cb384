package braid;

import braid.internal.selftest.PipelineCase;
import braid.internal.selftest.PipelineCases;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ThreadLocalRandom;
import org.junit.jupiter.api.Test;

/// The contract on ranks that are threads: all of it.
class ThreadRanksPipelineTest extends PipelineContract {
  private static final int RANDOM_CASES = 200;

  @Override
  void check(int ranks, List<PipelineCase> cases) {
    LocalRanks.run(ranks, world -> cases.forEach(each -> Contract.hold(each, world)));
  }

  /// A failure says the seed; give it here to see it again: `-Dbraid.seed=…`.
  @Test
  void randomCases() {
    long seed = Long.getLong("braid.seed", ThreadLocalRandom.current().nextLong());
    try {
      for (int ranks = 1; ranks <= 4; ranks++) {
        var random = new SplittableRandom(seed + ranks);
        check(ranks, PipelineCases.random(Capabilities.host(), random, ranks, RANDOM_CASES / 4));
      }
    } catch (RuntimeException | Error e) {
      throw new AssertionError("with -Dbraid.seed=" + seed + ": " + e.getMessage(), e);
    }
  }

  /// Two groups of one world at once, neither of them whole.
  @Test
  void groupsOfSomeRanks() {
    LocalRanks.run(
        4,
        world -> {
          var mine = world.rank() % 2 == 0 ? world.subset("even", 0, 2) : world.subset("odd", 1, 3);
          PipelineCases.table(Capabilities.host(), 2).forEach(each -> Contract.hold(each, mine));
        });
  }
}
