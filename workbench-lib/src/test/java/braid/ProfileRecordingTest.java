package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import org.junit.jupiter.api.Test;

/// Profiles of real ranks.
class ProfileRecordingTest {
  @Test
  void everyIterationHasItsBeginAndEverySpanItsStep() {
    LocalRanks.run(
        3,
        world -> {
          var spec = GemmSpec.allGatherGemm(24, 6, 8);
          try (var pipe = Pipeline.on(world).gemm(spec).overlap(Overlap.pipelined(2)).build()) {
            pipe.run();
            var profile = pipe.profile(3);
            assertThat(profile.startNanos()).hasSize(3);
            long previousEnd = Long.MIN_VALUE;
            for (int i = 0; i < 3; i++) {
              int iteration = i;
              long begin = profile.startNanos().get(i);
              long end = begin + profile.iterationNanos().get(i);
              assertThat(begin).isGreaterThanOrEqualTo(previousEnd);
              assertThat(profile.spans())
                  .filteredOn(span -> span.iteration() == iteration)
                  .isNotEmpty()
                  .allSatisfy(
                      span -> {
                        assertThat(span.startNanos()).isGreaterThanOrEqualTo(begin);
                        assertThat(span.endNanos()).isLessThanOrEqualTo(end);
                      });
              previousEnd = end;
            }
            assertThat(profile.spans())
                .filteredOn(span -> span.stage() == Stage.GEMM)
                .extracting(Span::label)
                .contains("gemm own", "gemm 1")
                .allMatch(label -> label.startsWith("gemm "));
            assertThat(profile.spans())
                .filteredOn(span -> span.stage() == Stage.COPY)
                .extracting(Span::label)
                .isNotEmpty()
                .allMatch(label -> label.startsWith("fetch "));
          }
        });
  }

  @Test
  void aProfileHasTheLoadOfOtherProcesses() {
    LocalRanks.run(
        2,
        world -> {
          try (var pipe = Pipeline.on(world).gemm(GemmSpec.allGatherGemm(24, 6, 8)).build()) {
            Profile profile;
            long nanos;
            int iterations = 8;
            do {
              iterations *= 4;
              profile = pipe.profile(iterations);
              nanos = profile.iterationNanos().stream().mapToLong(Long::longValue).sum();
            } while (world.broadcast(nanos, 0) < MachineLoad.SHORTEST_NANOS);
            assertThat(profile.load().isPresent()).isEqualTo(world.rank() == 0);
          }
        });
  }
}
