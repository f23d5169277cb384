package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.selftest.PipelineCases;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
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
  @EnumSource(
      value = Method.class,
      names = {"PIPELINED", "DIRECT", "UNFUSED"})
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
            // too, within its memory.
            long rowsOfRank = (long) iterations * SPEC.m() / 3 * SPEC.k() * Float.BYTES;
            assertThat(sumOf(profile, Stage.COPY, Span::bytes)).isEqualTo(2 * rowsOfRank);
            assertThat(sumOf(profile, Stage.LOCAL, Span::bytes))
                .isEqualTo(method == Method.UNFUSED ? rowsOfRank : 0);
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
          // The first fails for what all ranks share, the second for what each has to itself.
          assertThatThrownBy(
                  () ->
                      Pipeline.on(world).gemm(GemmSpec.allGatherGemm(1 << 20, 2, 1 << 20)).build())
              .isInstanceOf(BraidException.class)
              .hasMessageMatching(".*needs 2199023255552 bytes a rank.*, where \\d+ are free.*");
          assertThatThrownBy(
                  () ->
                      Pipeline.on(world)
                          .gemm(GemmSpec.gemmReduceScatter(1 << 20, 2, 1 << 20))
                          .build())
              .isInstanceOf(BraidException.class)
              .hasMessageMatching("2199023255552 bytes were asked for but \\d+ are available; .*");
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

  @Test
  void c6EveryHoleOfTheTableIsRefusedAndNamesTheNearest() {
    LocalRanks.run(
        2,
        world -> {
          for (var row : Capabilities.host()) {
            if (!row.supported() && row.kind() == MemoryKind.NATIVE) {
              var spec = PipelineCases.spec(row.pattern(), 24, 16, 8, 48);
              var how = PipelineCases.overlap(row.method(), 2).over(row.transport());
              assertThatThrownBy(() -> Pipeline.on(world).gemm(spec).overlap(how).build())
                  .hasMessageStartingWith(
                      "%s does not exist for %s".formatted(row.method(), row.pattern()))
                  .hasMessageEndingWith("the nearest is splits(1)");
            }
          }
          assertThatThrownBy(() -> Pipeline.on(world).gemm(SPEC).memory(MemoryKind.NVSHMEM).build())
              .hasMessage(
                  "memory kind nvshmem needs CUDA but the backend is host; use native or auto");
        });
  }

  @Test
  void chunksMustCoverAllRowsOnce() {
    assertThatThrownBy(() -> Overlap.splits(2).boundaries(0, 8, 4))
        .hasMessage(
            "boundaries must rise but were [0, 8, 4]: chunk 1 would end at 4 and begin at 8, over"
                + " the one before it; give each row to one chunk");
    assertThatThrownBy(() -> Overlap.splits(2).boundaries(2, 8))
        .hasMessage("boundaries must begin with 0 but were [2, 8]: rows 0..1 belong to no chunk");
    assertThatThrownBy(() -> Overlap.splits(2).boundaries(8))
        .hasMessageStartingWith("boundaries must be 2 or more rows but were [8]");
    LocalRanks.run(
        2,
        world -> {
          assertThatThrownBy(
                  () ->
                      Pipeline.on(world)
                          .gemm(SPEC)
                          .overlap(Overlap.defaults().boundaries(0, 4, 10))
                          .build())
              .hasMessage(
                  "boundaries must end at 12 (rows of the largest part) but were [0, 4, 10]: rows"
                      + " 10..11 belong to no chunk");
          assertThatThrownBy(
                  () ->
                      Pipeline.on(world)
                          .gemm(SPEC)
                          .overlap(Overlap.defaults().boundaries(0, 4, 14))
                          .build())
              .hasMessageEndingWith("there are no rows 12..13");
        });
  }

  @Test
  void fp8NeedsScalesAndOthersTakeNone() {
    LocalRanks.run(
        1,
        world -> {
          var fp8 = SPEC.dtype(DType.FP8_E4M3);
          assertThatThrownBy(() -> Pipeline.on(world).gemm(fp8).build())
              .hasMessageStartingWith(
                  "fp8_e4m3 numbers mean nothing without scales, and none were given");
          assertThatThrownBy(() -> Pipeline.on(world).gemm(SPEC).scales(1, 1).build())
              .hasMessage("scales are for fp8 but the type is fp32; leave them out");
          assertThatThrownBy(() -> Pipeline.on(world).gemm(fp8).scales(0, 1).build())
              .hasMessageStartingWith("scales must be more than 0 and finite");
          try (var pipe = Pipeline.on(world).gemm(fp8).scales(2, 0.5f).build()) {
            pipe.input().fill(1);
            pipe.weight().fill(3);
            pipe.run();
            assertThat(pipe.output().toFloats()).containsOnly(24);
            assertThat(pipe.amax()).isEqualTo(24);
            pipe.scales(4, 1);
            pipe.run();
            assertThat(pipe.output().toFloats()).containsOnly(96);
            assertThat(pipe.amax()).isEqualTo(96);
          }
        });
  }

  @Test
  void whatAProblemDoesNotHaveIsSaidWithTheRemedy() {
    LocalRanks.run(
        1,
        world -> {
          try (var pipe = Pipeline.on(world).gemm(SPEC).build()) {
            assertThatThrownBy(pipe::bias)
                .hasMessage("`%s` has no bias; make the problem with bias()".formatted(SPEC));
            assertThatThrownBy(pipe::preActivation).hasMessageEndingWith("with gelu()");
            assertThatThrownBy(pipe::gatheredInput).hasMessageEndingWith("with gatheredInput()");
            assertThatThrownBy(pipe::besideInput)
                .hasMessageEndingWith("with besideAllGather or besideReduceScatter");
            assertThatThrownBy(pipe::amax)
                .hasMessage("an amax is kept for fp8 but the type is fp32; take output() itself");
            assertThatThrownBy(() -> pipe.output(0))
                .hasMessageEndingWith("say outputInSymmetricMemory() in its overlap");
          }
          assertThatThrownBy(() -> SPEC.transposedInput())
              .hasMessageStartingWith("all-gather-gemm gathers rows of the input");
          assertThatThrownBy(() -> SPEC.accumulate().gelu())
              .hasMessageStartingWith("accumulate and gelu exclude each other");
          assertThatThrownBy(() -> GemmSpec.gemmAllReduce(4, 4, 4).gatheredInput())
              .hasMessageStartingWith("gemm-all-reduce gathers no input");
          assertThatThrownBy(() -> SPEC.output(DType.FP8_E5M2))
              .hasMessageStartingWith("the output must be one of fp32, tf32, bf16, fp16");
          assertThatThrownBy(() -> Overlap.splits(2).workers(2))
              .hasMessage("workers must be 0 over copy_engine but were 2; say over(WORKERS) first");
        });
  }

  /// Replaying must not freeze what may change between runs, and must not lay out anew.
  @Test
  void aReplayedRunTakesNewInputsAndScales() {
    LocalRanks.run(
        2,
        world -> {
          var spec = GemmSpec.gemmReduceScatter(8, 4, 6).dtype(DType.FP8_E4M3);
          var how = Overlap.splits(2).replay();
          try (var pipe = Pipeline.on(world).gemm(spec).overlap(how).scales(1, 1).build()) {
            for (int run = 1; run <= 3; run++) {
              pipe.input().fill(run);
              pipe.weight().fill(1);
              pipe.run();
              assertThat(pipe.output().toFloats()).containsOnly(6 * run);
            }
            pipe.scales(2, 1);
            pipe.run();
            assertThat(pipe.output().toFloats()).containsOnly(36);
          }
        });
  }

  /// The kernel knows how far each thread stands back.
  @Test
  void priorityDecidesWhoseThreadsStandBack() {
    LocalRanks.run(
        1,
        world -> {
          assertThat(niceness(world, Priority.COMMUNICATION))
              .containsEntry("comm", 0)
              .containsEntry("gemm-0", 5);
          assertThat(niceness(world, Priority.GEMM))
              .containsEntry("comm", 5)
              .containsEntry("gemm-0", 0);
          assertThat(niceness(world, Priority.EQUAL))
              .containsEntry("comm", 0)
              .containsEntry("gemm-0", 0);
        });
  }

  private static Map<String, Integer> niceness(ProcessGroup world, Priority priority)
      throws IOException {
    var group = world.subset("p-" + priority, 0);
    var how = Overlap.splits(2).priority(priority);
    try (group;
        var pipe = Pipeline.on(group).gemm(SPEC).overlap(how).build()) {
      pipe.run();
      var found = new HashMap<String, Integer>();
      try (var tasks = Files.list(Path.of("/proc/self/task"))) {
        for (var task : tasks.toList()) {
          var stat = Files.readString(task.resolve("stat"));
          var name = stat.substring(stat.indexOf('(') + 1, stat.lastIndexOf(')'));
          var fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ", -1);
          if (name.startsWith("braid-0-")) {
            // Field 19 of the line; this begins with field 3.
            found.put(name.substring("braid-0-".length()), Integer.parseInt(fields[16]));
          }
        }
      }
      return found;
    }
  }

  @Test
  void aSecondPipelineOfTheSameKindTakesTheFirstOnesPlan() {
    LocalRanks.run(
        2,
        world -> {
          var how = Overlap.splits(2);
          var first = Pipeline.on(world).gemm(SPEC).overlap(how).build();
          first.input().fill(7);
          first.run();
          first.close();
          try (var again = Pipeline.on(world).gemm(SPEC).overlap(how).build();
              var beside = Pipeline.on(world).gemm(SPEC).overlap(how).build()) {
            assertThat(again.output().toFloats()).containsOnly(0);
            again.verify();
            beside.verify();
          }
        });
  }

  /// One rank waits for signals in shared memory, the other at the store; each knows only its own
  /// call.
  @Test
  void aRunThatMeetsAnotherCallIsToldBothNames() {
    assertThatThrownBy(
            () ->
                LocalRanks.run(
                    2,
                    world -> {
                      try (var pipe = Pipeline.on(world).gemm(SPEC).build()) {
                        pipe.run();
                        if (world.rank() == 0) {
                          pipe.run();
                        } else {
                          world.barrier();
                        }
                      }
                    }))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("all ranks of a group must make the same calls in the same order")
        .hasMessageContaining("run of `all-gather-gemm m=24")
        .hasMessageContaining("barrier");
  }

  @Test
  void problemsThatDifferBetweenRanksAreNamedRankByRank() {
    assertThatThrownBy(
            () ->
                LocalRanks.run(
                    3,
                    world -> {
                      var spec = world.rank() == 2 ? SPEC.dtype(DType.BF16) : SPEC;
                      Pipeline.on(world).gemm(spec).build().close();
                    }))
        .isInstanceOf(BraidException.class)
        .hasMessageContainingAll("build a pipeline", "k=8 fp32", "k=8 bf16", "rank 2")
        .hasMessageMatching("(?s).*ranks 0, 1 ha.*|.*rank 0 .*rank 1.*|.*rank [01] .*");
  }
}
