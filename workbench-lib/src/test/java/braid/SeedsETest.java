package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.report.statistics.RankTimes;
import braid.internal.selftest.PipelineCase;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Link;
import braid.model.Overlap;
import braid.model.Span;
import braid.model.Stage;
import braid.model.Transport;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/// Lessons of a row-parallel linear layer in chunks: each test is named after its row of
/// docs/capabilities.md.
class SeedsETest {
  private static final Link SLOW = Link.parse("4MB/s,50us");

  @Test
  void e1ChunksTakeTurnsOnAPoolOfStreams() {
    LocalRanks.run(
        2,
        world -> {
          for (int streams : new int[] {1, 2, 6}) {
            var tuning = Overlap.pipelined(6).streams(streams);
            try (var pipe =
                Pipeline.on(world).gemm(GemmSpec.gemmAllReduce(24, 8, 6)).overlap(tuning).build()) {
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
          long apart = finishingCopies(world, spec, Overlap.pipelined(3));
          long shared =
              finishingCopies(world, spec, Overlap.pipelined(3).outputInSymmetricMemory());
          assertThat(apart).isEqualTo(6);
          assertThat(shared).isZero();
          try (var pipe =
              Pipeline.on(world)
                  .gemm(spec)
                  .overlap(Overlap.pipelined(3).outputInSymmetricMemory())
                  .build()) {
            pipe.run();
            world.barrier();
            assertThat(pipe.output(1 - world.rank()).toFloats())
                .containsExactly(pipe.output().toFloats());
            world.barrier();
          }
        });
  }

  private static long finishingCopies(ProcessGroup world, GemmSpec spec, Overlap tuning) {
    try (var pipe = Pipeline.on(world).gemm(spec).overlap(tuning).build()) {
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

  /// Sequential, and overlapped over either transport. Overlapped means that the GEMM ends although
  /// a peer has not begun, so its all-gather cannot have ended.
  @Test
  void e4AGemmRunsBesideAnAllGatherOverEitherTransportAndNotInTheReference() {
    var spec = GemmSpec.besideAllGather(64, 64, 64, 20_000);
    LocalRanks.run(2, SLOW, world -> assertThat(overlappedInUnfused(world, spec)).isLessThan(1));
    for (var transport : new Transport[] {Transport.COPY_ENGINE, Transport.WORKERS}) {
      multipliesBeforeItsPeerBegins(spec, Overlap.bulk().over(transport));
    }
  }

  /// Overlapped nanoseconds are sums and differences: less than one counts as none.
  private static double overlappedInUnfused(ProcessGroup world, GemmSpec spec) {
    try (var pipe = Pipeline.on(world).gemm(spec).overlap(Overlap.unfused()).build()) {
      pipe.verify();
      return RankTimes.of(pipe.profile(3)).overlapped();
    }
  }

  /// Rank 1 begins once rank 0's product is complete; it waits forever if the product waits for
  /// rank 1.
  private static void multipliesBeforeItsPeerBegins(GemmSpec spec, Overlap tuning) {
    var output = new CompletableFuture<TensorView>();
    var complete = new CompletableFuture<float[]>();
    LocalRanks.run(
        2,
        world -> {
          try (var pipe = Pipeline.on(world).gemm(spec).overlap(tuning).build()) {
            pipe.run();
            var product = pipe.output().toFloats();
            pipe.output().fill(Float.NaN);
            world.barrier();
            if (world.rank() == 0) {
              complete.complete(product);
              output.complete(pipe.output());
            } else {
              var expected = complete.join();
              while (!Arrays.equals(output.join().toFloats(), expected)) {
                Thread.onSpinWait();
              }
            }
            pipe.run();
            assertThat(pipe.output().toFloats()).containsExactly(product);
            world.barrier();
          }
        });
  }
}
