package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.pipeline.Tolerance;
import braid.internal.selftest.PipelineCase;
import braid.internal.selftest.PipelineCases;
import braid.model.BraidException;
import braid.model.ChunkOrder;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Pattern;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Place;
import braid.model.Priority;
import braid.model.Transport;
import braid.model.VerificationFailed;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Lessons of an API for overlapped GEMMs: each test is named after its row of
/// docs/capabilities.md.
class SeedsDTest {
  @Test
  void d1DefaultsAreConstantsThatDoNotChangeSilently() {
    // A change of one changes every user's timings and needs a line in the changelog.
    assertThat(Overlap.DEFAULT_SPLITS).isEqualTo(4);
    assertThat(Overlap.DEFAULT_DIRECT_SPLITS).isEqualTo(1);
    assertThat(Overlap.DEFAULT_RING_SPLITS).isEqualTo(1);
    assertThat(Overlap.DEFAULT_DOUBLING_SPLITS).isEqualTo(1);
    assertThat(Overlap.DEFAULT_STREAMS).isEqualTo(1);
    assertThat(Overlap.DEFAULT_ORDER).isEqualTo(ChunkOrder.NEXT_FIRST);
    assertThat(Overlap.DEFAULT_TRANSPORT).isEqualTo(Transport.COPY_ENGINE);
    assertThat(Overlap.DEFAULT_WORKERS).isEqualTo(1);
    assertThat(Overlap.DEFAULT_PRIORITY).isEqualTo(Priority.COMMUNICATION);
    assertThat(Overlap.DEFAULT_REPLAYED).isFalse();
    assertThat(Overlap.DEFAULT_SYMMETRIC_OUTPUT).isFalse();
    assertThat(GemmSpec.DEFAULT_DTYPE).isEqualTo(DType.FP32);
    assertThat(GemmSpec.DEFAULT_FP8_OUTPUT).isEqualTo(DType.BF16);
  }

  @Test
  void d1EveryMethodIsThere() {
    onRanks(
        2,
        world -> {
          var beside = GemmSpec.besideAllGather(24, 4, 8, 40);
          for (var method : Method.values()) {
            verify(world, beside, Overlap.of(method, 2));
          }
        });
  }

  /// Optional libraries are found at run time; code compiles and runs without them.
  @Test
  void d2NothingPublicMentionsALibraryThatMayBeMissing() throws Exception {
    var types = Path.of("target/classes/braid");
    try (var files = Files.list(types)) {
      var classes =
          files
              .map(file -> file.getFileName().toString())
              .filter(name -> name.endsWith(".class") && !name.equals("package-info.class"))
              .toList();
      assertThat(classes).hasSizeGreaterThan(30);
      for (var name : classes) {
        var type = Class.forName("braid." + name.replace(".class", ""), false, loader());
        if (Modifier.isPublic(type.getModifiers())) {
          assertThat(
                  Arrays.stream(type.getMethods()).map(java.lang.reflect.Method::toGenericString))
              .as(type.getName())
              .noneMatch(text -> text.contains("bytedeco") || text.contains("braid.natives"));
        }
      }
    }
  }

  private static ClassLoader loader() {
    return SeedsDTest.class.getClassLoader();
  }

  @Test
  void d3APipelineKeepsItsSignalsWhenItsTwinIsClosed() {
    onRanks(
        2,
        world -> {
          var spec = GemmSpec.gemmReduceScatter(24, 4, 8);
          var first = Pipeline.on(world).gemm(spec).build();
          try (var second = Pipeline.on(world).gemm(spec).build()) {
            first.run();
            second.run();
            first.close();
            second.verify();
            // The third reuses the plan of the first; the second is not disturbed.
            try (var third = Pipeline.on(world).gemm(spec).build()) {
              third.verify();
              second.verify();
            }
          }
        });
  }

  @ParameterizedTest
  @EnumSource(Pattern.class)
  void d4EveryPatternIsReplayed(Pattern pattern) {
    onRanks(
        3,
        world -> {
          for (var method : Method.values()) {
            if (method.unsupported(pattern).isEmpty()) {
              var spec = PipelineCases.spec(pattern, 23, 13, 7, 50);
              var tuning = Overlap.of(method, 2).replay();
              try (var pipe = Pipeline.on(world).gemm(spec).overlap(tuning).build()) {
                // Recorded by the first run, replayed by the others.
                pipe.run();
                pipe.verify();
                pipe.input().fillIntegers(99);
                pipe.verify();
              }
            }
          }
        });
  }

  @Test
  void d5ARankAndItsWorldAreOneValueThatCannotBeTurnedRound() {
    assertThatThrownBy(() -> new Place(4, 2))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("4");
    onRanks(2, world -> assertThat(world.place()).isEqualTo(new Place(world.rank(), 2)));
  }

  @Test
  void d7SizesThatDivideByNothingComeOutRight() {
    onRanks(
        3,
        world -> {
          for (var pattern : Pattern.values()) {
            for (var method : Method.values()) {
              if (method.unsupported(pattern).isEmpty()) {
                verify(world, PipelineCases.spec(pattern, 31, 7, 5, 71), Overlap.of(method, 4));
              }
            }
          }
        });
  }

  @Test
  void d7ASizeThatCannotBeNamesTheNearestThatCan() {
    onRanks(
        3,
        world -> {
          assertThatThrownBy(
                  () -> verify(world, GemmSpec.gemmReduceScatter(31, 7, 5), Overlap.pipelined(11)))
              .hasMessage(
                  "splits must be 1..10 (rows of the smallest shard) but was 11; try 10 splits");
          assertThatThrownBy(
                  () -> verify(world, GemmSpec.gemmAllReduce(31, 7, 2), Overlap.pipelined(4)))
              .hasMessage(
                  "k must be 3 or more (a step of the depth for each rank of group `world`) but"
                      + " was 2");
          assertThatThrownBy(
                  () -> verify(world, GemmSpec.gemmAllReduce(31, 7, 5), Overlap.pipelined(32)))
              .hasMessage("splits must be 1..31 (rows of the output) but was 32; try 31 splits");
          assertThatThrownBy(
                  () -> verify(world, GemmSpec.besideAllGather(3, 3, 3, 2), Overlap.bulk()))
              .hasMessage(
                  "elements beside must be 3 or more (a number for each rank of group `world`) but"
                      + " was 2");
        });
  }

  @Test
  void d8TheBiasIsAddedOnceHoweverManyRanksThereAre() {
    onRanks(
        4,
        world -> {
          for (var method : new Method[] {Method.PIPELINED, Method.DIRECT, Method.RING}) {
            for (var spec :
                new GemmSpec[] {
                  GemmSpec.gemmAllReduce(8, 4, 4), GemmSpec.gemmReduceScatter(8, 4, 4)
                }) {
              try (var pipe =
                  Pipeline.on(world).gemm(spec.bias()).overlap(Overlap.of(method, 2)).build()) {
                pipe.input().fill(1);
                pipe.weight().fill(1);
                pipe.bias().fill(100);
                pipe.run();
                assertThat(pipe.output().toFloats()).as("%s %s", spec, method).containsOnly(104);
              }
            }
          }
        });
  }

  @Test
  void d9EveryRankHoldsItsOwnPartToTheTolerance() {
    onRanks(
        2,
        world -> {
          var spec = GemmSpec.gemmReduceScatter(8, 4, 6).dtype(DType.BF16);
          try (var pipe = Pipeline.on(world).gemm(spec).overlap(Overlap.ring()).build()) {
            // Not integers: partial sums are rounded when sent, and the ring rounds differently.
            pipe.input().fill(0.3f);
            pipe.weight().fill(0.7f);
            pipe.verify();
            pipe.verify(0.1, 0.1);
            // Only rank 1's part is wrong, and by more than its own values allow.
            Runnable change =
                () -> {
                  if (world.rank() == 1) {
                    pipe.output().set(pipe.output().get(0, 0) + 1, 0, 0);
                  }
                };
            assertThatThrownBy(() -> pipe.verify(null, change))
                .isInstanceOf(VerificationFailed.class)
                .hasMessageStartingWith("rank 1: output[0, 0] must be 1.2");
            assertThatThrownBy(() -> pipe.verify(new Tolerance(0.1, 0.1), change))
                .isInstanceOf(VerificationFailed.class)
                .hasMessageContaining("within atol=0.100 rtol=0.100 but was 2.2");
          }
        });
  }

  @ParameterizedTest
  @EnumSource(names = {"FP8_E4M3", "FP8_E5M2"})
  void d10Fp8IsReadByRowsAndByColumns(DType dtype) {
    onRanks(
        2,
        world -> {
          var spec = GemmSpec.gemmReduceScatter(8, 4, 6).dtype(dtype);
          for (var form :
              new GemmSpec[] {
                spec,
                spec.transposedInput(),
                spec.transposedWeight(),
                spec.transposedInput().transposedWeight()
              }) {
            try (var pipe = Pipeline.on(world).gemm(form).scales(0.5f, 2).build()) {
              pipe.verify();
            }
          }
        });
  }

  @ParameterizedTest
  @EnumSource(Pattern.class)
  void d11OneRankNeedsNoOthers(Pattern pattern) {
    onRanks(
        1,
        world -> {
          for (var method : Method.values()) {
            if (method.unsupported(pattern).isEmpty()) {
              verify(world, PipelineCases.spec(pattern, 9, 5, 7, 11), Overlap.of(method, 2));
            }
          }
        });
  }

  /// A plan's key contains everything that the plan depends on: pipelines that differ in any of it
  /// have separate plans.
  @Test
  void d6PlansAreReusedByAllThatMattersAndNothingLess() {
    onRanks(
        2,
        world -> {
          var spec = GemmSpec.gemmAllReduce(24, 4, 8);
          var tuning = Overlap.pipelined(2);
          for (var other :
              List.of(
                  new PipelineCase(spec, tuning),
                  new PipelineCase(GemmSpec.gemmAllReduce(25, 4, 8), tuning),
                  new PipelineCase(spec.dtype(DType.BF16), tuning),
                  new PipelineCase(spec.dtype(DType.BF16).output(DType.FP32), tuning),
                  new PipelineCase(spec.bias(), tuning),
                  new PipelineCase(spec, tuning.streams(2)))) {
            long made = plansMade(world);
            verify(world, other.spec(), other.tuning());
            assertThat(plansMade(world)).as(other.toString()).isEqualTo(made + 1);
          }
          long meetings = count(world, "rendezvous");
          long reused = count(world, "plans reused");
          try (var again = Pipeline.on(world).gemm(spec).overlap(tuning).build()) {
            again.run();
            again.run();
          }
          assertThat(world.counters())
              .containsEntry("plans reused", reused + 1)
              .containsEntry("rendezvous", meetings);
        });
  }

  private static long plansMade(ProcessGroup world) {
    return count(world, "plans made");
  }

  private static long count(ProcessGroup world, String counter) {
    return Objects.requireNonNull(world.counters().get(counter), counter);
  }

  @Test
  void d4ReplaysAreCountedAndMeetNobody() {
    onRanks(
        2,
        world -> {
          var tuning = Overlap.pipelined(2).replay();
          try (var pipe =
              Pipeline.on(world)
                  .gemm(GemmSpec.gemmReduceScatter(24, 4, 8))
                  .overlap(tuning)
                  .build()) {
            pipe.run();
            var before = world.counters();
            long replays = count(world, "replays");
            pipe.run();
            pipe.run();
            assertThat(world.counters())
                .containsEntry("replays", replays + 2)
                .containsEntry("rendezvous", before.get("rendezvous"))
                .containsEntry("buffers allocated", before.get("buffers allocated"))
                .containsEntry("buffers reused", before.get("buffers reused"));
            assertThat(pipe.profile(1).counters()).containsKeys("replays", "plans made");
          }
        });
  }

  private static void onRanks(int ranks, Consumer<ProcessGroup> body) {
    LocalRanks.run(ranks, body::accept);
  }

  private static void verify(ProcessGroup world, GemmSpec spec, Overlap tuning) {
    try (var pipe = Pipeline.on(world).gemm(spec).overlap(tuning).build()) {
      pipe.verify();
    }
  }
}
