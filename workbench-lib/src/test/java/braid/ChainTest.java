package braid;

import static braid.PlainLoops.add;
import static braid.PlainLoops.times;
import static braid.PlainLoops.transposed;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.evidence.ChainStudy;
import braid.evidence.ProfileSet;
import braid.evidence.Study;
import braid.model.BraidException;
import braid.model.Configuration;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import braid.model.Timing;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Pipelines that run in order, compared with plain loops.
class ChainTest {
  private static final int TOKENS = 12;
  private static final int FEATURES = 6;
  private static final int WIDTH = 12;

  private static final GemmSpec UP = GemmSpec.allGatherGemm(TOKENS, WIDTH, FEATURES);
  private static final GemmSpec DOWN = GemmSpec.gemmReduceScatter(TOKENS, FEATURES, WIDTH);

  private static Stream<Arguments> layers() {
    return Stream.of(1, 2, 3)
        .flatMap(
            ranks ->
                Stream.of(
                        List.of(Overlap.pipelined(2), Overlap.pipelined(3)),
                        List.of(Overlap.ring(2), Overlap.direct(2)),
                        List.of(Overlap.unfused(), Overlap.unfused()),
                        List.of(Overlap.pipelined(2).replay(), Overlap.ring(2).replay()),
                        List.of(Overlap.pipelined(4).replay(), Overlap.pipelined(2)))
                    .map(tunings -> Arguments.of(ranks, tunings)));
  }

  /// A column-parallel layer followed by a row-parallel one, with inputs that change from run to
  /// run, one run at a time and in flight.
  @ParameterizedTest
  @MethodSource("layers")
  void aLayerIsItsPipelinesOneAfterTheOther(int ranks, List<Overlap> tunings) {
    var given = new ConcurrentHashMap<String, float[]>();
    LocalRanks.run(
        ranks,
        world -> {
          int rank = world.rank();
          try (var hidden = LocalTensor.on(world).shape(TOKENS, WIDTH / ranks).allocate();
              var up = Pipeline.on(world).gemm(UP).overlap(tunings.get(0)).output(hidden).build();
              var down =
                  Pipeline.on(world).gemm(DOWN).overlap(tunings.get(1)).input(hidden).build();
              var layer = Chain.of(up, down)) {
            for (int round = 0; round < 3; round++) {
              up.input().fillIntegers(10L * round + rank);
              given.put("x" + rank, up.input().toFloats());
              given.put("up" + rank, up.weight().toFloats());
              given.put("down" + rank, down.weight().toFloats());
              world.barrier();
              switch (round) {
                case 0 -> layer.run();
                case 1 -> assertThat(layer.time(6, Timing.BACK_TO_BACK)).hasSize(6);
                default -> assertThat(layer.time(3, Timing.LATENCY)).hasSize(3);
              }
              assertThat(down.output().toFloats()).containsExactly(expected(given, rank, ranks));
              world.barrier();
            }
            layer.verify();
          }
        });
  }

  private static float[] expected(Map<String, float[]> given, int rank, int ranks) {
    var x = new float[TOKENS * FEATURES];
    for (int each = 0; each < ranks; each++) {
      var rows = of(given, "x" + each);
      System.arraycopy(rows, 0, x, each * rows.length, rows.length);
    }
    var sum = new float[TOKENS * FEATURES];
    for (int each = 0; each < ranks; each++) {
      var hidden = times(x, of(given, "up" + each), TOKENS, FEATURES, WIDTH / ranks);
      add(sum, times(hidden, of(given, "down" + each), TOKENS, WIDTH / ranks, FEATURES));
    }
    int length = sum.length / ranks;
    return Arrays.copyOfRange(sum, rank * length, (rank + 1) * length);
  }

  private static float[] of(Map<String, float[]> given, String name) {
    return Objects.requireNonNull(given.get(name));
  }

  /// Two layers, each a chain, of which the second reads what the first wrote.
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void chainsOfAChainRunInOrder(boolean replayed) {
    int ranks = 2;
    var tuning = replayed ? Overlap.pipelined(2).replay() : Overlap.pipelined(2);
    var given = new ConcurrentHashMap<String, float[]>();
    LocalRanks.run(
        ranks,
        world -> {
          int rank = world.rank();
          int rows = TOKENS / ranks;
          try (var firstHidden = LocalTensor.on(world).shape(TOKENS, WIDTH / ranks).allocate();
              var between = SymmetricTensor.on(world).shape(rows, FEATURES).allocate();
              var hidden = LocalTensor.on(world).shape(TOKENS, WIDTH / ranks).allocate();
              var firstUp =
                  Pipeline.on(world).gemm(UP).overlap(tuning).output(firstHidden).build();
              var firstDown =
                  Pipeline.on(world)
                      .gemm(DOWN)
                      .overlap(tuning)
                      .input(firstHidden)
                      .output(between)
                      .build();
              var up =
                  Pipeline.on(world)
                      .gemm(UP)
                      .overlap(tuning)
                      .input(between)
                      .output(hidden)
                      .build();
              var down = Pipeline.on(world).gemm(DOWN).overlap(tuning).input(hidden).build();
              var first = Chain.of(firstUp, firstDown).named("first");
              var block = Chain.of(first, Chain.of(up, down))) {
            assertThat(block.pipelines()).containsExactly(firstUp, firstDown, up, down);
            for (int round = 0; round < 2; round++) {
              firstUp.input().fillIntegers(10L * round + rank);
              given.put("x" + rank, firstUp.input().toFloats());
              given.put("up" + rank, firstUp.weight().toFloats());
              given.put("down" + rank, firstDown.weight().toFloats());
              world.barrier();
              if (round == 0) {
                block.run();
              } else {
                assertThat(block.time(5, Timing.BACK_TO_BACK)).hasSize(5);
              }
              assertThat(between.local().toFloats()).containsExactly(expected(given, rank, ranks));
              given.put("y" + rank, between.local().toFloats());
              given.put("up" + rank, up.weight().toFloats());
              given.put("down" + rank, down.weight().toFloats());
              world.barrier();
              for (int peer = 0; peer < ranks; peer++) {
                given.put("x" + peer, of(given, "y" + peer));
              }
              world.barrier();
              assertThat(down.output().toFloats()).containsExactly(expected(given, rank, ranks));
              world.barrier();
            }
            block.verify();
            assertThatThrownBy(() -> Chain.of(first, firstDown))
                .isInstanceOf(BraidException.class)
                .hasMessageContaining("is in the chain already");
            assertThatThrownBy(() -> Chain.of(first, Chain.on(world)))
                .isInstanceOf(BraidException.class)
                .hasMessageContaining("has no links; add them with then(pipeline)");
          }
        });
  }

  /// A chain of two links beside a pipeline: the stage after them begins when both have ended.
  @Test
  void aChainRunsBesideAPipeline() {
    LocalRanks.run(
        2,
        world -> {
          int ranks = world.size();
          try (var hidden = LocalTensor.on(world).shape(TOKENS, WIDTH / ranks).allocate();
              var besideHidden = LocalTensor.on(world).shape(TOKENS, WIDTH / ranks).allocate();
              var up = Pipeline.on(world).gemm(UP).output(hidden).build();
              var down = Pipeline.on(world).gemm(DOWN).input(hidden).build();
              var beside = Pipeline.on(world).gemm(UP).output(besideHidden).build();
              var last = Pipeline.on(world).gemm(DOWN).input(besideHidden).build();
              var all = Chain.on(world).then(Chain.of(up, down), beside).then(last);
              var tuned =
                  all.with(
                      List.of(
                          Overlap.defaults(),
                          Overlap.unfused(),
                          Overlap.defaults(),
                          Overlap.ring(2)))) {
            for (var each : List.of(all, tuned)) {
              besideHidden.view().fill(Float.NaN);
              hidden.view().fill(Float.NaN);
              assertThat(each.time(4)).hasSize(4);
              assertThat(each.verify().values()).isPositive();
              assertThat(down.output().toFloats()).isEqualTo(last.output().toFloats());
            }
            assertThat(all.toString())
                .startsWith(
                    "chain (%s -> %s) beside ".formatted(up.lease().text(), down.lease().text()));
            assertThatThrownBy(() -> Chain.on(world).then(Chain.of(up), down))
                .isInstanceOf(BraidException.class);
          }
        });
  }

  /// While a layer multiplies, the next layer's weight is gathered; no weight is copied.
  @Test
  void f7LayersWhoseWeightsAreGatheredAheadOfThem() {
    int ranks = 2;
    int layers = 3;
    int width = 6;
    int tokens = 5;
    long elements = (long) width * width;
    var given = new ConcurrentHashMap<String, float[]>();
    LocalRanks.run(
        ranks,
        world -> {
          int rank = world.rank();
          var open = new ArrayList<AutoCloseable>();
          var weights = new ArrayList<LocalTensor>();
          var values = new ArrayList<LocalTensor>();
          var shards = new ArrayList<SymmetricTensor>();
          for (int layer = 0; layer <= layers; layer++) {
            weights.add(LocalTensor.on(world).shape(width, width).allocate());
            values.add(LocalTensor.on(world).shape(tokens, width).allocate());
            shards.add(SymmetricTensor.on(world).shape(elements / ranks).allocate());
            shards.getLast().local().fillIntegers(10L * layer + rank);
            given.put(layer + " " + rank, shards.getLast().local().toFloats());
          }
          values.getFirst().view().fillIntegers(70L + rank);
          given.put("x" + rank, values.getFirst().view().toFloats());
          var spec = GemmSpec.besideAllGather(tokens, width, width, elements);
          var chain = Chain.on(world);
          for (int layer = 0; layer < layers; layer++) {
            var pipe =
                Pipeline.on(world)
                    .gemm(spec)
                    .overlap(Overlap.bulk())
                    .input(values.get(layer))
                    .weight(weights.get(layer))
                    .output(values.get(layer + 1))
                    .besideInput(shards.get(layer + 1))
                    .besideOutput(weights.get(layer + 1))
                    .build();
            open.add(pipe);
            chain = chain.then(pipe);
          }
          world.barrier();
          weights.getFirst().view().copyFrom(stacked(given, 0, ranks));
          chain.run();
          var expected = of(given, "x" + rank);
          for (int layer = 0; layer < layers; layer++) {
            expected = times(expected, stacked(given, layer, ranks), tokens, width, width);
          }
          assertThat(values.getLast().view().toFloats()).containsExactly(expected);
          assertThat(weights.getLast().view().toFloats())
              .containsExactly(stacked(given, layers, ranks));
          world.barrier();
          for (var each : open.reversed()) {
            close(each);
          }
          shards.forEach(SymmetricTensor::close);
        });
  }

  /// Backward: dgrad beside the gather of the previous weight, and at the same time wgrad beside
  /// the scatter of the next gradient, on the same links.
  @Test
  void f7GradientsAreScatteredBehindTheirLayers() {
    int ranks = 2;
    int layers = 3;
    int width = 6;
    int tokens = 4;
    long elements = (long) width * width;
    var given = new ConcurrentHashMap<String, float[]>();
    LocalRanks.run(
        ranks,
        world -> {
          int rank = world.rank();
          var open = new ArrayList<AutoCloseable>();
          var weights = new ArrayList<LocalTensor>();
          var values = new ArrayList<LocalTensor>();
          var gradients = new ArrayList<LocalTensor>();
          var deltas = new ArrayList<LocalTensor>();
          var shards = new ArrayList<SymmetricTensor>();
          var scattered = new ArrayList<LocalTensor>();
          for (int layer = 0; layer <= layers; layer++) {
            weights.add(LocalTensor.on(world).shape(width, width).allocate());
            values.add(LocalTensor.on(world).shape(tokens, width).allocate());
            gradients.add(LocalTensor.on(world).shape(width, width).allocate());
            deltas.add(LocalTensor.on(world).shape(tokens, width).allocate());
            scattered.add(LocalTensor.on(world).shape(elements / ranks).allocate());
            shards.add(SymmetricTensor.on(world).shape(elements / ranks).allocate());
            shards.getLast().local().fillIntegers(10L * layer + rank);
            given.put(layer + " " + rank, shards.getLast().local().toFloats());
            values.getLast().view().fillIntegers(100L * layer + rank);
            given.put("x" + layer + " " + rank, values.getLast().view().toFloats());
          }
          deltas.getLast().view().fillIntegers(70L + rank);
          given.put("d" + rank, deltas.getLast().view().toFloats());
          var chain = Chain.on(world);
          for (int layer = layers - 1; layer > 0; layer--) {
            var dgrad =
                Pipeline.on(world)
                    .gemm(
                        GemmSpec.besideAllGather(tokens, width, width, elements).transposedWeight())
                    .overlap(Overlap.bulk())
                    .input(deltas.get(layer + 1))
                    .weight(weights.get(layer))
                    .output(deltas.get(layer))
                    .besideInput(shards.get(layer - 1))
                    .besideOutput(weights.get(layer - 1))
                    .build();
            var wgrad =
                Pipeline.on(world)
                    .gemm(
                        GemmSpec.besideReduceScatter(width, width, tokens, elements)
                            .transposedInput())
                    .overlap(Overlap.bulk())
                    .input(values.get(layer))
                    .weight(deltas.get(layer + 1))
                    .output(gradients.get(layer))
                    .besideInput(gradients.get(layer + 1))
                    .besideOutput(scattered.get(layer + 1))
                    .build();
            open.addAll(List.of(dgrad, wgrad));
            chain = chain.then(dgrad, wgrad);
          }
          world.barrier();
          weights.get(layers - 1).view().copyFrom(stacked(given, layers - 1, ranks));
          chain.run();
          // The gradient of layer 2 was computed in the first stage and scattered in the second.
          var sum = new float[width * width];
          for (int each = 0; each < ranks; each++) {
            add(
                sum,
                times(
                    transposed(of(given, "x2 " + each), tokens, width),
                    of(given, "d" + each),
                    width,
                    tokens,
                    width));
          }
          int length = sum.length / ranks;
          assertThat(scattered.get(2).view().toFloats())
              .containsExactly(Arrays.copyOfRange(sum, rank * length, (rank + 1) * length));
          var delta = of(given, "d" + rank);
          for (int layer = layers - 1; layer > 0; layer--) {
            delta =
                times(
                    delta,
                    transposed(stacked(given, layer, ranks), width, width),
                    tokens,
                    width,
                    width);
          }
          assertThat(deltas.get(1).view().toFloats()).containsExactly(delta);
          world.barrier();
          open.reversed().forEach(ChainTest::close);
          shards.forEach(SymmetricTensor::close);
        });
  }

  private static void close(AutoCloseable each) {
    try {
      each.close();
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }

  private static float[] stacked(Map<String, float[]> given, int layer, int ranks) {
    var first = of(given, layer + " 0");
    var all = new float[first.length * ranks];
    for (int rank = 0; rank < ranks; rank++) {
      System.arraycopy(of(given, layer + " " + rank), 0, all, rank * first.length, first.length);
    }
    return all;
  }

  /// Two collectives beside two multiplications, on the same links.
  @Test
  void pipelinesOfAStageRunSideBySide() {
    LocalRanks.run(
        2,
        world -> {
          try (var gather = Pipeline.on(world).gemm(GemmSpec.besideAllGather(6, 4, 8, 40)).build();
              var scatter =
                  Pipeline.on(world).gemm(GemmSpec.besideReduceScatter(4, 6, 8, 24)).build();
              var after = Pipeline.on(world).gemm(UP).build();
              var chain = Chain.on(world).then(gather, scatter).then(after)) {
            var outputs = List.of(gather, scatter, after);
            outputs.forEach(Pipeline::run);
            var alone = outputs.stream().map(pipe -> pipe.output().toFloats()).toList();
            var beside =
                List.of(gather.besideOutput().toFloats(), scatter.besideOutput().toFloats());
            outputs.forEach(pipe -> pipe.output().fill(Float.NaN));
            assertThat(chain.time(5, Timing.BACK_TO_BACK)).hasSize(5);
            for (int i = 0; i < 3; i++) {
              assertThat(outputs.get(i).output().toFloats()).containsExactly(alone.get(i));
            }
            assertThat(gather.besideOutput().toFloats()).containsExactly(beside.get(0));
            assertThat(scatter.besideOutput().toFloats()).containsExactly(beside.get(1));
          }
        });
  }

  @Test
  void aProfileHasThePipelinesStreamsInTheirOrder() {
    var profiles = new ConcurrentHashMap<Integer, Profile>();
    LocalRanks.run(
        2,
        world -> {
          try (var hidden = LocalTensor.on(world).shape(TOKENS, WIDTH / 2).allocate();
              var up = Pipeline.on(world).gemm(UP).output(hidden).build();
              var down = Pipeline.on(world).gemm(DOWN).input(hidden).build()) {
            profiles.put(world.rank(), Chain.of(up, down).profile(3));
            assertThat(Chain.of(up, down).named("layer").profile(1).configuration())
                .containsEntry("chain", "layer")
                .containsEntry("ranks", "2")
                .doesNotContainKey("pipeline 1");
            assertThatThrownBy(() -> Chain.of(up).named(" "))
                .isInstanceOf(BraidException.class)
                .hasMessage("a chain's name must not be blank; try `layer`");
          }
        });
    var profile = Objects.requireNonNull(profiles.get(0));
    assertThat(profile.spans().stream().map(Span::stream)).contains("1 comm", "2 comm");
    assertThat(profile.configuration())
        .containsEntry("pattern", "chain")
        .containsEntry("ranks", "2")
        .containsKeys("pipeline 1", "pipeline 2", "backend");
    for (int iteration = 0; iteration < 3; iteration++) {
      int index = iteration;
      long first = spans(profile, index, "1 ").mapToLong(Span::endNanos).max().orElseThrow();
      long second =
          spans(profile, index, "2 ")
              .filter(span -> span.stage() == Stage.GEMM)
              .mapToLong(Span::startNanos)
              .min()
              .orElseThrow();
      assertThat(second).isGreaterThanOrEqualTo(first);
    }
    assertThat(new ProfileSet(List.of(profile, Objects.requireNonNull(profiles.get(1)))).display())
        .isNotNull();
  }

  private static Stream<Span> spans(Profile profile, int iteration, String prefix) {
    return profile.spans().stream()
        .filter(span -> span.iteration() == iteration && span.stream().startsWith(prefix));
  }

  @Test
  void pipelineWhoseOutputIsReadInPlaceKeepsItsTuning() {
    LocalRanks.run(
        2,
        world -> {
          try (var up = Pipeline.on(world).gemm(UP).build();
              var down = Pipeline.on(world).gemm(DOWN).input(up.output()).build();
              var layer = Chain.of(up, down)) {
            assertThatThrownBy(() -> layer.with(List.of(Overlap.ring(1), down.tuning())))
                .hasMessage(
                    "%s cannot have another tuning, since %s works on its tensors; allocate them yourself and bind both to them"
                        .formatted(up, down));
            var study = Tuner.on(world).splits(1, 2).repeats(6).tune(layer);
            assertThat(study.tuned()).extracting(ChainStudy.Tuned::pipeline).containsExactly(2);
            try (var tuned = layer.with(study.overlaps())) {
              tuned.verify();
            }
          }
        });
  }

  @Test
  void anotherTuningRunsOnTheSameTensors() {
    LocalRanks.run(
        2,
        world -> {
          try (var hidden = LocalTensor.on(world).shape(TOKENS, WIDTH / 2).allocate();
              var result = LocalTensor.on(world).shape(TOKENS / 2, FEATURES).allocate();
              var up = Pipeline.on(world).gemm(UP).output(hidden).build();
              var down = Pipeline.on(world).gemm(DOWN).input(hidden).output(result).build();
              var layer = Chain.of(up, down)) {
            layer.run();
            var expected = result.view().toFloats();
            result.view().fill(Float.NaN);
            try (var other = layer.with(List.of(up.tuning(), Overlap.ring(3)))) {
              assertThat(other.pipelines().getFirst()).isSameAs(up);
              assertThat(other.pipelines().getLast().tuning()).isEqualTo(Overlap.ring(3));
              other.run();
              assertThat(result.view().toFloats()).containsExactly(expected);
            }
            layer.run();
          }
        });
  }

  @Test
  void tuningFindsATuningForEachPipeline() {
    LocalRanks.run(
        2,
        world -> {
          var alone = world.subset("alone-" + world.rank(), world.rank());
          try (var hidden = LocalTensor.on(world).shape(TOKENS, WIDTH / 2).allocate();
              var up = Pipeline.on(world).gemm(UP).output(hidden).build();
              var down = Pipeline.on(world).gemm(DOWN).input(hidden).build();
              var mine = Pipeline.on(alone).gemm(GemmSpec.gemmReduceScatter(4, 4, 4)).build();
              var layer = Chain.on(world).then(up).then(down).then(mine)) {
            var tuner = Tuner.on(world).splits(1, 2, 7).repeats(6);
            var study = tuner.tune(layer);
            // 6 rows per rank cannot be split into 7 chunks.
            assertThat(study.tuned()).extracting(ChainStudy.Tuned::pipeline).containsExactly(1, 2);
            for (var each : study.tuned()) {
              assertThat(List.copyOf(each.study().trials()))
                  .<Object>map(Study.Trial::configuration)
                  .containsExactly(Overlap.pipelined(1), Overlap.pipelined(2));
            }
            assertThat(study.overlaps()).hasSize(3);
            assertThat(study.overlaps().get(2)).isEqualTo(mine.tuning());
            assertThat(study.table().rowCount()).isEqualTo(2);
            assertThat(world.gather(study.headline())).containsOnly(study.headline());
            try (var tuned = layer.with(study.overlaps())) {
              tuned.verify();
            }
          }
        });
  }

  @Test
  void aChainOfOneRankKeepsItsTunings() {
    LocalRanks.run(
        1,
        world -> {
          try (var up = Pipeline.on(world).gemm(UP).overlap(Overlap.pipelined(2)).build();
              var layer = Chain.of(up)) {
            var study = Tuner.on(world).splits(1, 2).repeats(6).tune(layer);
            assertThat(study.overlaps()).containsExactly(Overlap.pipelined(2));
            assertThat(study.tuned()).isEmpty();
            assertThat(study.display().text())
                .isEqualTo(
                    "one rank has nothing to communicate; try -n 4, or predict on a described machine");
          }
        });
  }

  @Test
  void chainsAreComparedWithAnUnfusedOne() {
    LocalRanks.run(
        2,
        world -> {
          try (var plain = Pipeline.on(world).gemm(UP).overlap(Overlap.unfused()).build();
              var ring = Pipeline.on(world).gemm(UP).overlap(Overlap.ring(2)).build();
              var pipelined = Pipeline.on(world).gemm(UP).overlap(Overlap.pipelined(2)).build()) {
            var study =
                Tuner.on(world)
                    .repeats(6)
                    .steps("one GEMM")
                    .step("unfused", Chain.of(plain))
                    .step("ring", Chain.of(ring))
                    .step("pipelined", pipelined)
                    .run();
            assertThat(study.reference()).isEqualTo(new Configuration.Named("unfused"));
            assertThat(study.trials())
                .extracting(trial -> trial.configuration().toString())
                .containsExactly("ring", "pipelined");
            assertThat(study.problem())
                .containsEntry("steps", "one GEMM")
                .containsEntry("backend", "host");
            // The chains stay open.
            plain.run();
            ring.run();
          }
        });
  }

  @Test
  void impossibleChainsAreRefused() {
    LocalRanks.run(
        2,
        world -> {
          var alone = world.subset("alone-" + world.rank(), world.rank());
          var shared = LocalTensor.on(world).shape(TOKENS, WIDTH / 2).allocate();
          try (var up = Pipeline.on(world).gemm(UP).output(shared).build();
              var down = Pipeline.on(world).gemm(DOWN).input(shared).build()) {
            assertThatThrownBy(() -> Chain.on(world).run())
                .isInstanceOf(BraidException.class)
                .hasMessage("the chain has no links; add them with then(pipeline)");
            assertThatThrownBy(() -> Chain.of(up, up))
                .isInstanceOf(BraidException.class)
                .hasMessageEndingWith(
                    "is in the chain already; build another one for the second time");
            assertThatThrownBy(() -> Chain.on(world).then(up, down))
                .isInstanceOf(BraidException.class)
                .hasMessageStartingWith(
                    "links side by side must not share what one of them writes but the output of pipeline");
            try (var own = Pipeline.on(world).gemm(UP).build();
                var next = Pipeline.on(world).gemm(DOWN).input(own.output()).build()) {
              assertThatThrownBy(() -> Chain.on(world).then(next, own))
                  .isInstanceOf(BraidException.class)
                  .hasMessageStartingWith(
                      "links side by side must not share what one of them writes but the output of pipeline");
            }
            assertThatThrownBy(() -> Chain.on(alone).then(up))
                .isInstanceOf(BraidException.class)
                .hasMessageStartingWith("a link of the chain must be on `alone-");
            var chain = Chain.of(up, down);
            assertThatThrownBy(() -> chain.with(List.of(Overlap.ring())))
                .isInstanceOf(BraidException.class)
                .hasMessage(
                    "a tuning for each of 2 pipelines is needed but 1 were given; give one each");
            shared.close();
            assertThatThrownBy(chain::run)
                .isInstanceOf(BraidException.class)
                .hasMessage("local tensor 12x6 fp32 is closed; allocate it again");
          }
        });
  }
}
