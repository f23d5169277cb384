package braid;

import java.util.List;

/// The contract on ranks that are threads.
class ThreadRanksPipelineTest extends PipelineContract {
  @Override
  void check(int ranks, List<PipelineCase> cases) {
    LocalRanks.run(ranks, world -> cases.forEach(each -> each.check(world)));
  }
}
