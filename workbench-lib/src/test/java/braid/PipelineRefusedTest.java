package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BackendKind;
import braid.model.BraidException;
import braid.model.ChunkOrder;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.schedule.Schedule;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Calls that pipelines refuse, and their messages.
class PipelineRefusedTest {
  private static final GemmSpec SPEC = GemmSpec.allGatherGemm(24, 16, 8);

  @Test
  void splitsLargerThanTheRowsNameTheNearestLegalCount() {
    LocalRanks.run(
        2,
        world ->
            assertThatThrownBy(
                    () -> Pipeline.on(world).gemm(SPEC).overlap(Overlap.pipelined(24)).build())
                .hasMessage(
                    "splits must be 1..12 (rows of the smallest shard) but was 24; try 12 splits"));
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
              .hasMessageStartingWith("the problem is missing");
          assertThatThrownBy(() -> Pipeline.on(world).gemm(SPEC).gemm(SPEC))
              .hasMessage("gemm was set already: %s; set it once".formatted(SPEC));
          var tuning = Overlap.pipelined(2);
          assertThatThrownBy(() -> Pipeline.on(world).overlap(tuning).overlap(tuning))
              .hasMessage("overlap was set already: %s; set it once".formatted(tuning));
          try (var pipe = Pipeline.on(world).gemm(SPEC).build()) {
            assertThat(pipe.tuning()).isEqualTo(Overlap.defaults());
            assertThatThrownBy(() -> pipe.time(0))
                .hasMessage("time needs 1 or more iterations but was given 0; try time(10)");
          }
        });
  }

  @Test
  void anOptionWithoutEffectIsRefusedByPipelinesAndSchedules() {
    var sum = GemmSpec.gemmAllReduce(24, 16, 8);
    var inOutput =
        "the output of an unfused gemm-all-reduce is in symmetric memory already, where peers write the sums; leave outputInSymmetricMemory() out";
    var direction =
        "the order of a ring must be next_first or previous_first, its two directions, but was rank_order; leave order(...) out";
    var doubling =
        "the order of doubling follows from the numbers of the ranks but was previous_first; leave order(...) out";
    var bulk = "bulk does not exist for all-gather-gemm: ";
    LocalRanks.run(
        2,
        world -> {
          refused(world, SPEC, Overlap.ring().order(ChunkOrder.RANK_ORDER), direction);
          refused(world, sum, Overlap.ring().order(ChunkOrder.RANK_ORDER), direction);
          refused(world, sum, Overlap.unfused().outputInSymmetricMemory(), inOutput);
          refused(world, SPEC, Overlap.doubling().order(ChunkOrder.PREVIOUS_FIRST), doubling);
          refused(world, SPEC, Overlap.bulk(), bulk);
          // The same options where they have an effect.
          for (var tuning :
              List.of(
                  Overlap.direct().order(ChunkOrder.RANK_ORDER),
                  Overlap.pipelined(2).outputInSymmetricMemory())) {
            Pipeline.on(world).gemm(sum).overlap(tuning).build().close();
          }
          var biased = sum.bias();
          var placed = Overlap.unfused().outputInSymmetricMemory();
          try (var pipe = Pipeline.on(world).gemm(biased).overlap(placed).build()) {
            pipe.run();
            world.barrier();
            assertThat(pipe.output(1).toFloats()).containsExactly(pipe.output(0).toFloats());
            world.barrier();
          }
        });
  }

  @Test
  void groupsThatDoNotDivideTheRanksAreRefused() {
    LocalRanks.run(
        4,
        world -> {
          refused(
              world,
              SPEC,
              Overlap.twoLevel(3),
              "two-level exchanges rows within groups of 3 ranks, which must divide the 4 ranks; try"
                  + " twoLevel(2) or direct() for 4 ranks");
          refused(
              world,
              SPEC,
              Overlap.twoLevel(8),
              "two-level exchanges rows within groups of 8 ranks, which must divide the 4 ranks; try"
                  + " twoLevel(4) or direct() for 4 ranks");
          // On one host all ranks are one group.
          try (var pipe = Pipeline.on(world).gemm(SPEC).overlap(Overlap.twoLevel()).build()) {
            assertThat(pipe.schedule())
                .isEqualTo(Schedule.of(SPEC, Overlap.twoLevel(4), world.size()));
          }
        });
    assertThatThrownBy(() -> Schedule.of(SPEC, Overlap.twoLevel(), 6))
        .hasMessage(
            "twoLevel() takes the ranks of a host, which only a pipeline or a tuner knows; try"
                + " twoLevel(3) or direct() for 6 ranks");
    assertThatThrownBy(() -> Schedule.of(SPEC, Overlap.twoLevel(2), 5))
        .hasMessageEndingWith("which must divide the 5 ranks; try direct() for 5 ranks");
    assertThatThrownBy(() -> Overlap.twoLevel(1))
        .hasMessage("groupRanks must be 2 or more but were 1; try twoLevel(2), or direct()");
    assertThatThrownBy(() -> Overlap.ring().groupRanks(2))
        .hasMessage("only two-level has groupRanks but ring was given 2; try twoLevel(2)");
  }

  private static void refused(ProcessGroup world, GemmSpec spec, Overlap tuning, String message) {
    assertThatThrownBy(() -> Pipeline.on(world).gemm(spec).overlap(tuning).build())
        .isInstanceOf(BraidException.class)
        .hasMessageStartingWith(message);
    assertThatThrownBy(() -> Schedule.of(spec, tuning, world.size()))
        .isInstanceOf(BraidException.class)
        .hasMessageStartingWith(message);
  }

  @Test
  void chunksMustCoverAllRowsOnce() {
    assertThatThrownBy(() -> Overlap.pipelined(2).boundaries(0, 8, 4))
        .hasMessage(
            "boundaries must rise but were [0, 8, 4]: chunk 1 would end at 4 and begin at 8, over"
                + " the one before it; give each row to one chunk");
    assertThatThrownBy(() -> Overlap.pipelined(2).boundaries(2, 8))
        .hasMessage("boundaries must begin with 0 but were [2, 8]: rows 0..1 belong to no chunk");
    assertThatThrownBy(() -> Overlap.pipelined(2).boundaries(8))
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
              .hasMessageEndingWith("rows 12..13 do not exist");
        });
  }

  @Test
  void fp8NeedsScalesAndOthersTakeNone() {
    LocalRanks.run(
        1,
        world -> {
          var fp8 = SPEC.dtype(DType.FP8_E4M3);
          assertThatThrownBy(() -> Pipeline.on(world).gemm(fp8).build())
              .hasMessageStartingWith("fp8_e4m3 needs scales but none were given");
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
  void cudaRefusesTypesThatItDoesNotMultiply() {
    assertThatThrownBy(
            () ->
                Feasibility.checkTypes(
                    SPEC.dtype(DType.FP8_E4M3).weight(DType.BF16), BackendKind.CUDA))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "cuda multiplies fp8 by fp8, fp32 by tf32, and other types by themselves, but the input"
                + " is fp8_e4m3 and the weight bf16; give both one type, such as dtype(bf16), or run"
                + " on the host: --backend host");
    for (var input : DType.values()) {
      for (var weight : DType.values()) {
        var spec = SPEC.input(input).weight(weight);
        boolean fp8 = input.bytes() == 1 && weight.bytes() == 1;
        boolean fp32 = input.bytes() == 4 && weight.bytes() == 4;
        Feasibility.checkTypes(spec, BackendKind.HOST);
        if (input == weight || fp8 || fp32) {
          Feasibility.checkTypes(spec, BackendKind.CUDA);
        } else {
          assertThatThrownBy(() -> Feasibility.checkTypes(spec, BackendKind.CUDA))
              .hasMessageContaining("the input is %s and the weight %s;".formatted(input, weight));
        }
      }
    }
  }

  @Test
  void anFp8OutputNeedsAScaleOfItsOwn() {
    LocalRanks.run(
        1,
        world -> {
          var wide = SPEC.dtype(DType.FP8_E4M3);
          var narrow = wide.output(DType.FP8_E4M3);
          assertThatThrownBy(() -> Pipeline.on(world).gemm(narrow).build())
              .hasMessageContaining("call scales(1, 1, 1), or pass what");
          assertThatThrownBy(() -> Pipeline.on(world).gemm(narrow).scales(2, 1).build())
              .hasMessage(
                  "an output in fp8_e4m3 needs a scale too but was given scales 2.0 and 1.0; call"
                      + " scales(input, weight, output)");
          assertThatThrownBy(() -> Pipeline.on(world).gemm(wide).scales(2, 1, 3).build())
              .hasMessage(
                  "an output in bf16 takes no scale but was given scales 2.0, 1.0 and 3.0; call"
                      + " scales(input, weight)");
          for (float wrong :
              new float[] {0, -1, Float.NaN, Float.POSITIVE_INFINITY, Float.MIN_VALUE}) {
            assertThatThrownBy(() -> Pipeline.on(world).gemm(narrow).scales(1, 1, wrong))
                .hasMessageStartingWith("the output's scale must be more than 0 and finite");
          }
          try (var pipe = Pipeline.on(world).gemm(narrow).scales(2, 0.5f, 3).build()) {
            assertThat(pipe.output().dtype()).isEqualTo(DType.FP8_E4M3);
            pipe.input().fill(1);
            pipe.weight().fill(3);
            pipe.run();
            // 24 / 3; the amax is taken before the division.
            assertThat(pipe.output().toFloats()).containsOnly(8);
            assertThat(pipe.amax()).isEqualTo(24);
            pipe.verify();
            pipe.scales(2, 0.5f, 0.05f);
            pipe.run();
            // 480 exceeds the range of the type.
            assertThat(pipe.output().toFloats()).containsOnly(448);
            assertThat(pipe.amax()).isEqualTo(24);
            pipe.verify();
            assertThatThrownBy(() -> pipe.scales(1, 1))
                .hasMessageContaining("needs a scale too but was given scales 1.0 and 1.0");
          }
        });
  }

  @Test
  void aMixWithFp8NeedsScales() {
    LocalRanks.run(
        1,
        world -> {
          var mixed = SPEC.weight(DType.FP8_E5M2);
          assertThatThrownBy(() -> Pipeline.on(world).gemm(mixed).build())
              .hasMessageStartingWith("fp8_e5m2 needs scales");
          try (var pipe = Pipeline.on(world).gemm(mixed).scales(2, 0.25f).build()) {
            pipe.input().fill(1.125f);
            pipe.weight().fill(3);
            pipe.run();
            assertThat(pipe.output().dtype()).isEqualTo(DType.FP32);
            assertThat(pipe.output().toFloats()).containsOnly(8 * 1.125f * 3 * 0.5f);
            assertThat(pipe.amax()).isEqualTo(8 * 1.125f * 3 * 0.5f);
          }
        });
  }

  @Test
  void aMissingTensorIsNamedWithTheRemedy() {
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
                .hasMessageEndingWith("call outputInSymmetricMemory() in its overlap");
          }
          assertThatThrownBy(() -> SPEC.accumulate().gelu())
              .hasMessageStartingWith("accumulate and gelu exclude each other");
          assertThatThrownBy(() -> GemmSpec.gemmAllReduce(4, 4, 4).gatheredInput())
              .hasMessageStartingWith("gemm-all-reduce gathers no input");
          assertThatThrownBy(() -> SPEC.output(DType.FP8_E5M2))
              .hasMessage(
                  "an fp8 output needs an fp8 input and weight but they are fp32 and fp32; try"
                      + " output(bf16), or dtype(fp8_e4m3) before it");
          var narrow = SPEC.dtype(DType.FP8_E4M3).output(DType.FP8_E4M3);
          assertThatThrownBy(() -> narrow.weight(DType.BF16))
              .hasMessageContaining("they are fp8_e4m3 and bf16;");
          assertThatThrownBy(narrow::accumulate)
              .hasMessage(
                  "accumulate adds to what the output holds, and fp8 holds too few digits to be"
                      + " added to; try output(bf16)");
          assertThatThrownBy(() -> Overlap.pipelined(2).workers(2))
              .hasMessage(
                  "workers must be 0 over copy_engine but were 2; call over(WORKERS) first");
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
