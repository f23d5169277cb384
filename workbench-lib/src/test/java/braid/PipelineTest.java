package braid;

import static java.util.stream.Collectors.joining;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.pipeline.Tolerance;
import braid.internal.selftest.PipelineCases;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Link;
import braid.model.MemoryKind;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Priority;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import braid.model.VerificationFailed;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Isolated, because it finds this process's threads by name.
@Isolated
class PipelineTest {
  private static final GemmSpec SPEC = GemmSpec.allGatherGemm(24, 16, 8);

  @Test
  void ownInputsAreVerifiedToo() {
    LocalRanks.run(
        2,
        world -> {
          try (var pipe = Pipeline.on(world).gemm(SPEC).overlap(Overlap.pipelined(3)).build()) {
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

  /// Sizes of a rank's parts: 3 ranks divide 7, 8 and 9 into 3, 2, 2; 3, 3, 2; and 3, 3, 3.
  @Test
  void tensorsHoldARanksPart() {
    LocalRanks.run(
        3,
        world -> {
          long rows = world.rank() == 0 ? 3 : 2;
          long columns = world.rank() == 2 ? 2 : 3;
          hasShapes(
              world,
              GemmSpec.allGatherGemm(7, 8, 9),
              "%dx9 9x%d 7x%d".formatted(rows, columns, columns));
          hasShapes(
              world,
              GemmSpec.allGatherGemm(7, 8, 9).transposedInput().transposedWeight(),
              "9x%d %dx9 7x%d".formatted(rows, columns, columns));
          hasShapes(world, GemmSpec.gemmReduceScatter(7, 8, 9), "7x3 3x8 %dx8".formatted(rows));
          hasShapes(world, GemmSpec.gemmAllReduce(7, 8, 9), "7x3 3x8 7x8");
          hasShapes(world, GemmSpec.besideAllGather(7, 8, 9, 5), "7x9 9x8 7x8");
          hasShapes(world, GemmSpec.besideReduceScatter(7, 8, 9, 5), "7x9 9x8 7x8");
        });
  }

  private static void hasShapes(ProcessGroup world, GemmSpec spec, String inputWeightOutput) {
    try (var pipe = Pipeline.on(world).gemm(spec).build()) {
      assertThat(
              Stream.of(pipe.input(), pipe.weight(), pipe.output())
                  .map(tensor -> tensor.shape().stream().map(String::valueOf).collect(joining("x")))
                  .collect(joining(" ")))
          .isEqualTo(inputWeightOutput);
    }
  }

  @Test
  void aWrongResultFailsOnEveryRank() {
    LocalRanks.run(
        2,
        world -> {
          try (var pipe = Pipeline.on(world).gemm(SPEC).overlap(Overlap.pipelined(3)).build()) {
            pipe.weight().fill(1);
            pipe.input().fill(1);
            Runnable change =
                () -> {
                  if (world.rank() == 1) {
                    pipe.output().set(Float.NaN, 0, 0);
                  }
                };
            for (var tolerance : new Tolerance[] {null, new Tolerance(1e9, 0)}) {
              assertThatThrownBy(() -> pipe.verify(tolerance, change))
                  .isInstanceOf(VerificationFailed.class)
                  .hasMessageStartingWith("rank 1: output[0, 0] must be 8.0")
                  .hasMessageEndingWith(
                      "but was NaN; first wrong is chunk 0 from rank 0 of %s, %s"
                          .formatted(SPEC, Overlap.pipelined(3)));
            }
          }
        });
  }

  @Test
  void inputsThatAreNoIntegersAreComparedWithinTheTypesRounding() {
    LocalRanks.run(
        2,
        world -> {
          try (var pipe = Pipeline.on(world).gemm(SPEC).overlap(Overlap.pipelined(3)).build()) {
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
    var tuning =
        switch (method) {
          case PIPELINED -> Overlap.pipelined(3).streams(2);
          case DIRECT -> Overlap.direct(2);
          default -> Overlap.unfused();
        };
    int iterations = 2;
    LocalRanks.run(
        3,
        Link.parse("100MB/s,50us"),
        world -> {
          try (var pipe = Pipeline.on(world).gemm(SPEC).overlap(tuning).build()) {
            var profile = pipe.profile(iterations);
            assertThat(profile.iterations()).isEqualTo(iterations);
            assertThat(profile.plainNanos()).hasSize(iterations);
            assertThat(profile.cost()).isPresent();
            assertThat(profile.place()).isEqualTo(world.place());
            assertThat(profile.configuration())
                .containsEntry("ranks", "3")
                .containsEntry("backend", "host")
                .containsEntry("link", "100MB/s,50us")
                .containsEntry("memory", "native")
                .containsEntry("method", method.toString());
            // All rows are multiplied once per iteration, by this rank's columns.
            int columns = Math.toIntExact(pipe.weight().shape().get(1));
            assertThat(sumOf(profile, Stage.GEMM, Span::flops))
                .isEqualTo(iterations * 2L * SPEC.m() * columns * SPEC.k());
            // All other ranks' rows come over the link once per iteration; no rank moves its own.
            long rowsOfRank = (long) iterations * SPEC.m() / 3 * SPEC.k() * Float.BYTES;
            assertThat(sumOf(profile, Stage.COPY, Span::bytes)).isEqualTo(2 * rowsOfRank);
            assertThat(sumOf(profile, Stage.LOCAL, Span::bytes)).isZero();
            assertThat(profile.spans())
                .allSatisfy(span -> assertThat(span.startNanos()).isGreaterThanOrEqualTo(0));
            assertThat(profile.spans())
                .extracting(Span::stream)
                .as("the rank has a column of its own")
                .isSubsetOf("comm", "gemm-0", "gemm-1");
            // Each copy takes at least the time of the link, and is within its iteration.
            assertThat(profile.spans())
                .filteredOn(span -> span.stage() == Stage.COPY && span.chunk() >= 0)
                .isNotEmpty();
          }
        });
  }

  private static long sumOf(
      Profile profile, Stage stage, java.util.function.ToLongFunction<Span> measure) {
    return profile.spans().stream().filter(span -> span.stage() == stage).mapToLong(measure).sum();
  }

  /// Each rank's rows are stored as columns, and parts have two sizes.
  @Test
  void g7AnInputStoredByColumnsIsGatheredByColumns() {
    int m = 11;
    int k = 5;
    var spec = GemmSpec.allGatherGemm(m, 6, k).transposedInput().gatheredInput();
    for (var tuning : List.of(Overlap.pipelined(3), Overlap.ring(2), Overlap.unfused())) {
      LocalRanks.run(
          3,
          world -> {
            try (var pipe = Pipeline.on(world).gemm(spec).overlap(tuning).build()) {
              int first = new int[] {0, 4, 8}[world.rank()];
              int rows = world.rank() == 2 ? 3 : 4;
              assertThat(pipe.input().shape()).containsExactly((long) k, (long) rows);
              assertThat(pipe.gatheredInput().shape()).containsExactly((long) k, (long) m);
              for (int row = 0; row < rows; row++) {
                for (int depth = 0; depth < k; depth++) {
                  pipe.input().set(100 * (first + row) + depth, depth, row);
                }
              }
              pipe.weight().fill(0);
              pipe.weight().set(1, 2, 1);
              pipe.run();
              for (int row = 0; row < m; row++) {
                for (int depth = 0; depth < k; depth++) {
                  assertThat(pipe.gatheredInput().get(depth, row)).isEqualTo(100 * row + depth);
                }
                assertThat(pipe.output().get(row, 0)).isZero();
                assertThat(pipe.output().get(row, 1)).isEqualTo(100 * row + 2);
              }
              pipe.verify();
            }
          });
    }
  }

  /// Rows of the transposed product are columns of the product: input and weight change places.
  @Test
  void g7ColumnsAreScatteredAsRowsOfTheTransposedProduct() {
    var rows = GemmSpec.gemmReduceScatter(6, 8, 9);
    var columns = GemmSpec.gemmReduceScatter(8, 6, 9).transposedInput().transposedWeight();
    LocalRanks.run(
        3,
        world -> {
          try (var plain = Pipeline.on(world).gemm(rows).build();
              var turned =
                  Pipeline.on(world)
                      .gemm(columns)
                      .input(plain.weight())
                      .weight(plain.input())
                      .build()) {
            plain.run();
            turned.verify();
            var product = new ArrayList<Float>();
            for (var part : world.gather(plain.output())) {
              for (float each : part) {
                product.add(each);
              }
            }
            var mine = turned.output();
            int first = 3 * world.rank();
            assertThat(mine.shape()).containsExactly(world.rank() == 2 ? 2L : 3L, 6L);
            for (int column = 0; column < mine.shape().getFirst(); column++) {
              for (int row = 0; row < 6; row++) {
                assertThat(mine.get(column, row)).isEqualTo(product.get(8 * row + first + column));
              }
            }
          }
        });
  }

  /// The scale of the first one's output is that of the second one's input.
  @Test
  void anFp8OutputIsTheNextInput() {
    int ranks = 2;
    int m = 6;
    int hidden = 8;
    int k = 4;
    float scale = 0.5f;
    var up = GemmSpec.allGatherGemm(m, hidden, k).dtype(DType.FP8_E4M3).output(DType.FP8_E4M3);
    var down = GemmSpec.gemmReduceScatter(m, 4, hidden).dtype(DType.FP8_E4M3).output(DType.FP32);
    LocalRanks.run(
        ranks,
        world -> {
          try (var middle =
                  LocalTensor.on(world).shape(m, hidden / ranks).dtype(DType.FP8_E4M3).allocate();
              var first = Pipeline.on(world).gemm(up).scales(1, 1, scale).output(middle).build();
              var second = Pipeline.on(world).gemm(down).scales(scale, 1).input(middle).build()) {
            first.input().fill(1);
            first.weight().fill(world.rank() + 1);
            second.weight().fill(2);
            first.run();
            second.run();
            // Rank r's four columns are 4 (r + 1), stored as 8 (r + 1).
            assertThat(middle.view().toFloats()).containsOnly(8 * (world.rank() + 1));
            assertThat(first.amax()).isEqualTo(4 * ranks);
            assertThat(second.output().toFloats()).containsOnly((4 * 4 + 4 * 8) * 2);
            second.verify();
          }
        });
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
          // The first fails for symmetric memory, the second for private memory.
          assertThatThrownBy(
                  () ->
                      Pipeline.on(world).gemm(GemmSpec.allGatherGemm(1 << 20, 2, 1 << 20)).build())
              .isInstanceOf(BraidException.class)
              .hasMessageMatching(
                  ".*the buffers need \\d+ MiB of .* but \\d+ MiB are free there: rank 0 needs `gathered input` 4194304 MiB, .*");
          assertThatThrownBy(
                  () ->
                      Pipeline.on(world)
                          .gemm(GemmSpec.gemmReduceScatter(1 << 20, 2, 1 << 20))
                          .build())
              .isInstanceOf(BraidException.class)
              .hasMessageMatching(
                  ".*the buffers need \\d+ MiB of .* but \\d+ MiB are free there: rank 0 needs `input` 2097152 MiB, .*");
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
              var tuning = Overlap.of(row.method(), 2).over(row.transport());
              if (row.transport().isLibrary()
                  && row.method().unsupported(row.pattern()).isEmpty()) {
                assertThatThrownBy(() -> Pipeline.on(world).gemm(spec).overlap(tuning).build())
                    .hasMessageContaining(row.transport().toString())
                    .hasMessageMatching(".*; (take|use) .*");
                continue;
              }
              assertThatThrownBy(() -> Pipeline.on(world).gemm(spec).overlap(tuning).build())
                  .hasMessageStartingWith(
                      "%s does not exist for %s".formatted(row.method(), row.pattern()))
                  .hasMessageEndingWith(
                      "the nearest is "
                          + (row.method() == Method.DOUBLING ? "ring()" : "pipelined(1)"));
            }
          }
          assertThatThrownBy(() -> Pipeline.on(world).gemm(SPEC).memory(MemoryKind.NVSHMEM).build())
              .hasMessage(
                  "memory kind nvshmem needs CUDA but the backend is host; use native or auto");
        });
  }

  /// Replay must honor changes between runs, and must not lay out again.
  @Test
  void aReplayedRunTakesNewInputsAndScales() {
    LocalRanks.run(
        2,
        world -> {
          var spec = GemmSpec.gemmReduceScatter(8, 4, 6).dtype(DType.FP8_E4M3);
          var tuning = Overlap.pipelined(2).replay();
          try (var pipe = Pipeline.on(world).gemm(spec).overlap(tuning).scales(1, 1).build()) {
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

  /// The kernel reports the nice value of each thread.
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

  /// Returns the kernel's line on a thread; one without a name if the thread has ended.
  private static String stat(Path task) {
    try {
      return Files.readString(task.resolve("stat"));
    } catch (IOException e) {
      return "0 () ";
    }
  }

  private static Map<String, Integer> niceness(ProcessGroup world, Priority priority)
      throws IOException {
    var group = world.subset("p-" + priority, 0);
    var tuning = Overlap.pipelined(2).priority(priority);
    try (group;
        var pipe = Pipeline.on(group).gemm(SPEC).overlap(tuning).build()) {
      pipe.run();
      var found = new HashMap<String, Integer>();
      try (var tasks = Files.list(Path.of("/proc/self/task"))) {
        for (var task : tasks.toList()) {
          var stat = stat(task);
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
          var tuning = Overlap.pipelined(2);
          var first = Pipeline.on(world).gemm(SPEC).overlap(tuning).build();
          first.input().fill(7);
          first.run();
          first.close();
          try (var again = Pipeline.on(world).gemm(SPEC).overlap(tuning).build();
              var beside = Pipeline.on(world).gemm(SPEC).overlap(tuning).build()) {
            assertThat(again.output().toFloats()).containsOnly(0);
            again.verify();
            beside.verify();
          }
        });
  }
}
