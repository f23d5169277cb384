package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.report.statistics.RankTimes;
import braid.internal.selftest.PipelineCase;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// What a row-parallel linear layer in chunks taught: each test is named after its row of
/// docs/capabilities.md.
@Timeout(60)
class SeedsETest {
  private static final Link SLOW = Link.parse("4MB/s,50us");

  @Test
  void e1ChunksTakeTurnsOnAPoolOfStreams() {
    LocalRanks.run(
        2,
        world -> {
          for (int streams : new int[] {1, 2, 6}) {
            var how = Overlap.splits(6).streams(streams);
            try (var pipe =
                Pipeline.on(world).gemm(GemmSpec.gemmAllReduce(24, 8, 6)).overlap(how).build()) {
              pipe.verify();
              var chunksOf =
                  pipe.profile(1).spans().stream()
                      .filter(span -> span.stage() == Stage.GEMM)
                      .collect(Collectors.groupingBy(Span::stream, Collectors.counting()));
              assertThat(chunksOf).hasSize(streams);
              assertThat(chunksOf.values()).containsOnly(6L / streams);
            }
          }
        });
  }

  @Test
  void e2AnOutputInSymmetricMemoryNeedsNoCopyAndIsReadByPeers() {
    LocalRanks.run(
        2,
        world -> {
          var spec = GemmSpec.gemmAllReduce(24, 8, 6);
          long apart = finishingCopies(world, spec, Overlap.splits(3));
          long shared = finishingCopies(world, spec, Overlap.splits(3).outputInSymmetricMemory());
          assertThat(apart).isEqualTo(6);
          assertThat(shared).isZero();
          try (var pipe =
              Pipeline.on(world)
                  .gemm(spec)
                  .overlap(Overlap.splits(3).outputInSymmetricMemory())
                  .build()) {
            pipe.run();
            world.barrier();
            assertThat(pipe.output(1 - world.rank()).toFloats())
                .containsExactly(pipe.output().toFloats());
            world.barrier();
          }
        });
  }

  private static long finishingCopies(ProcessGroup world, GemmSpec spec, Overlap how) {
    try (var pipe = Pipeline.on(world).gemm(spec).overlap(how).build()) {
      pipe.verify();
      return pipe.profile(1).spans().stream()
          .filter(span -> span.stream().equals("finish") && span.stage() == Stage.LOCAL)
          .count();
    }
  }

  @Test
  void e3AllGatherThenLinearAndLinearThenReduceScatterAreExact() {
    LocalRanks.run(
        4,
        world -> {
          for (var dtype : DType.values()) {
            for (var spec :
                new GemmSpec[] {
                  GemmSpec.allGatherGemm(24, 16, 8).dtype(dtype),
                  GemmSpec.gemmReduceScatter(24, 16, 8).dtype(dtype)
                }) {
              Contract.hold(new PipelineCase(spec, Overlap.defaults()), world);
            }
          }
        });
  }

  /// What the benchmark compares: one after the other; beside each other over compute units; beside
  /// each other over copy engines.
  @Test
  void e4AGemmRunsBesideAnAllGatherOverEitherTransportAndNotInTheReference() {
    LocalRanks.run(
        2,
        SLOW,
        world -> {
          var spec = GemmSpec.besideAllGather(640, 640, 640, 20_000);
          assertThat(overlapped(world, spec, Overlap.unfused())).isLessThan(1);
          assertThat(overlapped(world, spec, Overlap.bulk())).isPositive();
          assertThat(overlapped(world, spec, Overlap.bulk().over(Transport.WORKERS))).isPositive();
        });
  }

  /// Nanoseconds, which come from sums and differences: less than one is none.
  private static double overlapped(ProcessGroup world, GemmSpec spec, Overlap how) {
    try (var pipe = Pipeline.on(world).gemm(spec).overlap(how).build()) {
      pipe.verify();
      return RankTimes.of(pipe.profile(3)).overlapped();
    }
  }
}
