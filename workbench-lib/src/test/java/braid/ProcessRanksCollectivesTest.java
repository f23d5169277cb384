package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.selftest.CollectiveCase;
import braid.internal.selftest.Sweep;
import braid.model.DType;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/// The contract on ranks as processes.
class ProcessRanksCollectivesTest extends CollectivesContract {
  /// Sampling interval of cases: processes check slower, and run the same code.
  private static final int SAMPLED = Sweep.times(2, 5);

  @Override
  void check(int ranks, List<CollectiveCase> all) throws Exception {
    var cases =
        IntStream.range(0, all.size())
            .filter(i -> i % SAMPLED == ranks % SAMPLED)
            .mapToObj(all::get)
            .toList();
    var texts = cases.stream().map(CollectiveCase::text).toArray(String[]::new);
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
        Arrays.stream(cases).map(CollectiveCase::parse).forEach(each -> Contract.hold(each, world));
        messages(world);
        System.out.println("checked " + cases.length + " cases");
      }
    }

    private static void messages(ProcessGroup world) {
      int ranks = world.size();
      if (ranks == 1) {
        return;
      }
      var comm = Collectives.on(world);
      try (var x = SymmetricTensor.on(world).shape(5).dtype(DType.FP32).name("x").allocate();
          var y = SymmetricTensor.on(world).shape(5).dtype(DType.FP32).name("y").allocate()) {
        for (int round = 0; round < 20; round++) {
          x.local().fill(100f * round + world.rank());
          int previous = (world.rank() + ranks - 1) % ranks;
          comm.sendReceive(x, (world.rank() + 1) % ranks, y, previous);
          assertThat(y.local().toFloats()).containsOnly(100f * round + previous);
        }
        if (world.rank() == 0) {
          comm.send(x, 1);
        } else if (world.rank() == 1) {
          comm.receive(y, 0);
          assertThat(y.local().get(0)).isEqualTo(1900);
        }
      }
    }
  }
}
