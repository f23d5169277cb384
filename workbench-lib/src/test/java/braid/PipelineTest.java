package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

@Timeout(60)
class PipelineTest {
  private static final GemmSpec SPEC = GemmSpec.allGatherGemm(24, 16, 8);

  @Test
  void splitsLargerThanTheRowsNameTheNearestLegalCount() {
    LocalRanks.run(
        2,
        world ->
            assertThatThrownBy(
                    () -> Pipeline.on(world).gemm(SPEC).overlap(Overlap.splits(24)).build())
                .hasMessage(
                    "splits must be 1..12 (rows of the smallest shard) but was 24; try splits(12)"));
  }

  @Test
  void everyRankNeedsARowAndAColumn() {
    LocalRanks.run(
        4,
        world -> {
          assertThatThrownBy(
                  () -> Pipeline.on(world).gemm(GemmSpec.allGatherGemm(3, 16, 8)).build())
              .hasMessage("m must be 4 or more (a row for each rank of group `world`) but was 3");
          assertThatThrownBy(
                  () -> Pipeline.on(world).gemm(GemmSpec.allGatherGemm(24, 2, 8)).build())
              .hasMessage(
                  "n must be 4 or more (a column for each rank of group `world`) but was 2");
        });
  }

  @Test
  void aBuilderRefusesRepeatsAndOmissions() {
    LocalRanks.run(
        1,
        world -> {
          assertThatThrownBy(() -> Pipeline.on(world).build())
              .hasMessageStartingWith("gemm is missing");
          assertThatThrownBy(() -> Pipeline.on(world).gemm(SPEC).gemm(SPEC))
              .hasMessage("gemm was said already: %s; say it once".formatted(SPEC));
          var how = Overlap.splits(2);
          assertThatThrownBy(() -> Pipeline.on(world).overlap(how).overlap(how))
              .hasMessage("overlap was said already: %s; say it once".formatted(how));
          try (var pipe = Pipeline.on(world).gemm(SPEC).build()) {
            assertThat(pipe.overlap()).isEqualTo(Overlap.defaults());
            assertThatThrownBy(() -> pipe.time(0))
                .hasMessage("time needs 1 or more iterations but was given 0; try time(10)");
          }
        });
  }

  @Test
  void ownInputsAreVerifiedToo() {
    LocalRanks.run(
        2,
        world -> {
          try (var pipe = Pipeline.on(world).gemm(SPEC).overlap(Overlap.splits(3)).build()) {
            pipe.input().fill(1);
            pipe.weight().fill(1);
            pipe.run();
            assertThat(pipe.output().toFloats()).containsOnly(8);
            pipe.verify();
            assertThatThrownBy(() -> pipe.verify(-1, 0))
                .hasMessage("atol and rtol must be 0 or more but were -1.0 and 0.0");
          }
        });
  }

  /// What is not a number is never right, though reference and result agree in it.
  @Test
  void aWrongResultFailsOnEveryRank() {
    LocalRanks.run(
        2,
        world -> {
          try (var pipe = Pipeline.on(world).gemm(SPEC).overlap(Overlap.splits(3)).build()) {
            if (world.rank() == 1) {
              pipe.weight().set(Float.NaN, 0, 0);
            }
            assertThatThrownBy(pipe::verify)
                .isInstanceOf(VerificationFailed.class)
                .hasMessageStartingWith("rank 1: output[0, 0] must be NaN")
                .hasMessageEndingWith(
                    "but was NaN; first wrong is chunk 0 from rank 0 of %s, %s"
                        .formatted(SPEC, Overlap.splits(3)));
          }
        });
  }

  @Test
  void inputsThatAreNoIntegersAreComparedWithinTheTypesRounding() {
    LocalRanks.run(
        2,
        world -> {
          try (var pipe = Pipeline.on(world).gemm(SPEC).overlap(Overlap.splits(3)).build()) {
            pipe.input().fill(0.1f);
            pipe.weight().fill(0.3f);
            pipe.verify();
          }
        });
  }

  @ParameterizedTest
  @EnumSource(names = {"PIPELINED", "DIRECT", "UNFUSED"})
  void aProfileHasEveryCopyAndEveryMultiplication(Method method) {
    var how =
        switch (method) {
          case PIPELINED -> Overlap.splits(3).streams(2);
          case DIRECT -> Overlap.direct(2);
          default -> Overlap.unfused();
        };
    int iterations = 2;
    LocalRanks.run(
        3,
        Link.parse("100MB/s,50us"),
        world -> {
          try (var pipe = Pipeline.on(world).gemm(SPEC).overlap(how).build()) {
            var profile = pipe.profile(iterations);
            assertThat(profile.iterations()).isEqualTo(iterations);
            assertThat(profile.place()).isEqualTo(world.place());
            assertThat(profile.configuration())
                .containsEntry("ranks", "3")
                .containsEntry("backend", "host")
                .containsEntry("link", "100MB/s,50us")
                .containsEntry("memory", "native")
                .containsEntry("method", method.toString());
            // All rows are multiplied once an iteration, by this rank's columns.
            int columns = Math.toIntExact(pipe.weight().shape().get(1));
            assertThat(sumOf(profile, Stage.GEMM, Span::flops))
                .isEqualTo(iterations * 2L * SPEC.m() * columns * SPEC.k());
            // All other ranks' rows come over the link once an iteration; unfused moves its own
            // too.
            int rows = method == Method.UNFUSED ? SPEC.m() : SPEC.m() / 3 * 2;
            assertThat(sumOf(profile, Stage.COPY, Span::bytes))
                .isEqualTo((long) iterations * rows * SPEC.k() * Float.BYTES);
            assertThat(profile.spans())
                .allSatisfy(span -> assertThat(span.startNanos()).isGreaterThanOrEqualTo(0));
            assertThat(profile.spans())
                .extracting(Span::stream)
                .as("the rank has a column of its own")
                .isSubsetOf("comm", "gemm-0", "gemm-1");
            // Each copy takes at least what the link takes, and lies within its iteration.
            assertThat(profile.spans())
                .filteredOn(span -> span.stage() == Stage.COPY && span.chunk() >= 0)
                .isNotEmpty();
          }
        });
  }

  private static long sumOf(
      Profile profile, Stage stage, java.util.function.ToLongFunction<Span> what) {
    return profile.spans().stream().filter(span -> span.stage() == stage).mapToLong(what).sum();
  }

  @Test
  void aClosedPipelineSaysSo() {
    LocalRanks.run(
        2,
        world -> {
          var pipe = Pipeline.on(world).gemm(SPEC).build();
          world.close();
          pipe.close();
          assertThatThrownBy(pipe::run).hasMessageEndingWith("is closed; build it again");
        });
  }

  @Test
  void a9ABuildThatFailsLeavesNothingAndCanBeRepeated() {
    LocalRanks.run(
        2,
        world -> {
          assertThatThrownBy(
                  () ->
                      Pipeline.on(world)
                          .gemm(GemmSpec.allGatherGemm(2, 2, Integer.MAX_VALUE))
                          .build())
              .isInstanceOfAny(BraidException.class, OutOfMemoryError.class);
          try (var pipe = Pipeline.on(world).gemm(SPEC).build()) {
            pipe.verify();
          }
        });
  }

  @Test
  void manyPipelinesOneAfterTheOtherAndSideBySide() {
    LocalRanks.run(
        2,
        world -> {
          try (var one = Pipeline.on(world).gemm(SPEC).build();
              var other =
                  Pipeline.on(world)
                      .gemm(SPEC.dtype(DType.BF16))
                      .overlap(Overlap.direct())
                      .build()) {
            IntStream.range(0, 3)
                .forEach(
                    i -> {
                      one.verify();
                      other.verify();
                    });
          }
        });
  }
}
