package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.selftest.PipelineCase;
import braid.internal.selftest.Sweep;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/// The contract on ranks as processes.
class ProcessRanksPipelineTest extends PipelineContract {
  /// Sampling interval of cases: processes check slower, and run the same code.
  private static final int SAMPLED = Sweep.times(2, 7);

  @Override
  void check(int ranks, List<PipelineCase> all) throws Exception {
    var cases =
        IntStream.range(0, all.size())
            .filter(i -> i % SAMPLED == ranks % SAMPLED)
            .mapToObj(all::get)
            .toList();
    var texts = cases.stream().map(PipelineCase::text).toArray(String[]::new);
    var more = Map.of("BRAID_LINK", "unlimited", "BRAID_TIMEOUT_SECONDS", "60");
    for (var ended : ProcessRanks.run(ranks, more, OnRank.class, texts)) {
      assertThat(ended.exitCode()).as("rank %d: %s", ended.rank(), ended.output()).isZero();
      assertThat(ended.output()).endsWith("checked " + cases.size() + " cases\n");
    }
  }

  /// Body of each process.
  static final class OnRank {
    private OnRank() {}

    public static void main(String[] cases) {
      try (var world = ProcessGroup.world()) {
        Arrays.stream(cases).map(PipelineCase::parse).forEach(each -> Contract.hold(each, world));
        System.out.println("checked " + cases.length + " cases");
      }
    }
  }
}
