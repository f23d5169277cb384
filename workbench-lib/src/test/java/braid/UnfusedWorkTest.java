package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.selftest.PipelineCases;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.GemmSpec.Pattern;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// The reference does no work that the best unfused implementation would not do. Work is counted,
/// not timed.
class UnfusedWorkTest {
  private static final int M = 24;
  private static final int N = 12;
  private static final int K = 6;
  private static final int BESIDE = 30;

  /// Work of an iteration of a rank: bytes moved within the rank, sent or fetched, read and written
  /// by sums, and multiplications.
  private record Work(long local, long copied, long summed, long flops) {
    static Work of(Profile profile) {
      return new Work(
          bytes(profile, Stage.LOCAL),
          bytes(profile, Stage.COPY),
          bytes(profile, Stage.REDUCE),
          profile.spans().stream().mapToLong(Span::flops).sum());
    }

    private static long bytes(Profile profile, Stage stage) {
      return profile.spans().stream()
          .filter(span -> span.stage() == stage)
          .mapToLong(Span::bytes)
          .sum();
    }
  }

  private static Work work(ProcessGroup world, GemmSpec spec, Overlap tuning) {
    try (var pipe = Pipeline.on(world).gemm(spec).overlap(tuning).build()) {
      pipe.verify();
      return Work.of(pipe.profile(1));
    }
  }

  private static List<GemmSpec> specs(Pattern pattern) {
    var plain = PipelineCases.spec(pattern, M, N, K, BESIDE);
    var specs =
        new ArrayList<>(
            List.of(
                plain,
                plain.dtype(DType.BF16),
                plain.bias(),
                plain.accumulate().bias(),
                plain.bias().gelu()));
    if (pattern == Pattern.ALL_GATHER_GEMM) {
      specs.add(plain.gatheredInput());
      specs.add(plain.transposedInput());
      specs.add(plain.transposedInput().gatheredInput());
    }
    return specs;
  }

  @ParameterizedTest
  @EnumSource(Pattern.class)
  void onOneRankEveryMethodDoesTheSame(Pattern pattern) {
    LocalRanks.run(
        1,
        world -> {
          for (var spec : specs(pattern)) {
            var byMethod = new EnumMap<Method, Work>(Method.class);
            for (var method : Method.values()) {
              if (method.unsupported(pattern).isEmpty()) {
                byMethod.put(method, work(world, spec, Overlap.of(method, 2)));
              }
            }
            assertThat(byMethod).containsKey(Method.UNFUSED);
            assertThat(byMethod.values().stream().distinct().toList())
                .as("%s: %s", spec, byMethod)
                .hasSize(1);
            assertThat(byMethod.values()).allSatisfy(each -> assertThat(each.copied()).isZero());
          }
        });
  }

  /// Three ranks; each moves exactly the bytes of the collective.
  @Test
  void onThreeRanksNothingIsMovedTwice() {
    int ranks = 3;
    long input = (long) M * K * Float.BYTES;
    long output = (long) M * N * Float.BYTES;
    long flops = 2L * M * N * K / ranks;
    long others = ranks - 1L;
    LocalRanks.run(
        ranks,
        world -> {
          var gathered = GemmSpec.allGatherGemm(M, N, K);
          assertThat(work(world, gathered, Overlap.unfused()))
              .isEqualTo(new Work(0, input / ranks * others, 0, flops));
          // Returning the gathered input takes a copy of this rank's rows, with every method.
          for (var tuning : List.of(Overlap.unfused(), Overlap.pipelined(2), Overlap.ring())) {
            assertThat(work(world, gathered.gatheredInput(), tuning).local())
                .isEqualTo(input / ranks);
            assertThat(work(world, gathered.gatheredInput().transposedInput(), tuning))
                .isEqualTo(work(world, gathered.gatheredInput(), tuning));
          }
          // A sum of each rank's third, read from all ranks and written once.
          long sum = output / ranks * (ranks + 1);
          assertThat(work(world, GemmSpec.gemmReduceScatter(M, N, K).bias(), Overlap.unfused()))
              .isEqualTo(new Work(0, output / ranks * others, sum, flops));
          var reduced = GemmSpec.gemmAllReduce(M, N, K);
          assertThat(work(world, reduced, Overlap.unfused()))
              .isEqualTo(new Work(0, 2 * output / ranks * others, sum, flops));
          // Work on the sum takes one pass over all rows, like after a library's all-reduce.
          for (var more : List.of(Feature.BIAS, Feature.ACCUMULATE, Feature.GELU)) {
            assertThat(
                    work(world, PipelineCases.with(reduced, EnumSet.of(more)), Overlap.unfused()))
                .isEqualTo(new Work(0, 2 * output / ranks * others, sum + 2 * output, flops));
          }
        });
  }

  /// A weight is widened once per iteration.
  @Test
  void theWeightIsWidenedOnce() {
    LocalRanks.run(
        1,
        world -> {
          var found = new EnumMap<Method, Long>(Method.class);
          var spec = GemmSpec.allGatherGemm(M, N, K).dtype(DType.BF16);
          for (var tuning : List.of(Overlap.unfused(), Overlap.pipelined(4), Overlap.direct(2))) {
            try (var pipe = Pipeline.on(world).gemm(spec).overlap(tuning).build()) {
              found.put(
                  tuning.method(),
                  pipe.profile(1).spans().stream()
                      .filter(span -> span.stage() == Stage.GEMM)
                      .mapToLong(Span::bytes)
                      .sum());
            }
          }
          long weight = (long) K * N * Short.BYTES;
          assertThat(found)
              .isEqualTo(
                  Map.of(Method.UNFUSED, weight, Method.PIPELINED, weight, Method.DIRECT, weight));
        });
  }
}
