package braid;

import braid.internal.selftest.PipelineCase;
import braid.internal.selftest.PipelineCases;
import braid.internal.selftest.Sweep;
import java.util.List;
import org.junit.jupiter.api.Test;

/// The whole contract on ranks as threads.
class ThreadRanksPipelineTest extends PipelineContract {
  @Override
  void check(int ranks, List<PipelineCase> cases) {
    LocalRanks.run(ranks, world -> cases.forEach(each -> Contract.hold(each, world)));
  }

  /// Two groups of one world at once, each with only some of its ranks.
  @Test
  void groupsOfSomeRanks() {
    var cases = Sweep.oneOf(6, PipelineCases.table(Capabilities.host(), 2));
    LocalRanks.run(
        4,
        world -> {
          var mine = world.rank() % 2 == 0 ? world.subset("even", 0, 2) : world.subset("odd", 1, 3);
          cases.forEach(each -> Contract.hold(each, mine));
        });
  }
}
