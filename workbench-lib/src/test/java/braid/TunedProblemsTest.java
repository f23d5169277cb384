package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import braid.evidence.Comparison;
import braid.evidence.Runs;
import braid.evidence.Study;
import braid.internal.context.RankContext;
import braid.internal.memory.Counter;
import braid.internal.rank.Outbox;
import braid.internal.selftest.WrittenSchedules;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.Configuration;
import braid.model.Configuration.LayoutTuning;
import braid.model.ContextParallel;
import braid.model.GemmSpec;
import braid.model.Method;
import braid.model.MimeBundle;
import braid.model.Overlap;
import braid.model.Problem;
import braid.model.Timing;
import braid.model.TokenLayout;
import braid.model.Transport;
import braid.natives.kernels.Drawn;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Tunings of every problem, and schedules of one's own beside them.
class TunedProblemsTest {
  private static final GemmSpec GEMM = GemmSpec.allGatherGemm(24, 16, 8);
  private static final AttentionSpec ATTENTION = AttentionSpec.of(64, 4, 8).causal();

  /// Returns the study of each rank, which all have alike, and what rank 0 showed.
  private static <C extends Configuration> Study<C> tuned(
      int ranks, ConcurrentLinkedQueue<String> shown, Function<ProcessGroup, Tuner<C>> tuner) {
    var studies = new ConcurrentLinkedQueue<Study<C>>();
    LocalRanks.run(
        ranks,
        world -> {
          RankContext.current().outbox(new Shown(shown));
          studies.add(tuner.apply(world).repeats(6).warmup(0).seed(5).run());
        });
    assertThat(studies).hasSize(ranks).allMatch(studies.element()::equals);
    var study = studies.element();
    var loaded = Study.fromJson(study.toJson());
    assertThat(loaded).isEqualTo(study);
    assertThat(loaded.table().printAll()).isEqualTo(study.table().printAll());
    return study;
  }

  private static <C extends Configuration> Study<C> tuned(
      int ranks, Function<ProcessGroup, Tuner<C>> tuner) {
    return tuned(ranks, new ConcurrentLinkedQueue<>(), tuner);
  }

  private record Shown(ConcurrentLinkedQueue<String> texts) implements Outbox {
    @Override
    public void publish(MimeBundle bundle) {
      texts.add("published " + bundle.text());
    }

    @Override
    public void display(MimeBundle bundle, String displayId) {
      texts.add(bundle.text());
    }

    @Override
    public void update(MimeBundle bundle, String displayId) {
      texts.add(bundle.text());
    }
  }

  private static List<String> names(Study<?> study) {
    return study.trials().stream().map(trial -> trial.configuration().toString()).toList();
  }

  @Test
  void attentionIsProposedEveryMethodThatItsHeadsAllow() {
    var shown = new ConcurrentLinkedQueue<String>();
    var study = tuned(4, shown, world -> Tuner.on(world).attention(ATTENTION));
    ContextParallel best = study.best();

    assertThat(study.reference()).isEqualTo(ContextParallel.unfused());
    assertThat(names(study))
        .containsExactly(
            "ring, 1 split",
            "ring, 2 splits",
            "ring, 4 splits",
            "all-gather-kv, 1 split",
            "all-gather-kv, 2 splits",
            "all-gather-kv, 4 splits",
            "ulysses, 1 split",
            "two-level with 2 ranks per all-to-all, 1 split",
            "two-level with 2 ranks per all-to-all, 2 splits");
    assertThat(study.configuration(best.toString())).isEqualTo(best);
    assertThat(study.repeats()).isEqualTo(study.unfusedAgain().size()).isEqualTo(6);
    assertThat(study.problem())
        .containsEntry("pattern", "attention")
        .containsEntry("sequence", "64")
        .doesNotContainKeys("method", "splits", "ranks");
    assertThat(shown)
        .anyMatch(
            text ->
                text.startsWith(
                    "left out 3 of 12 configurations, such as ulysses, 2 splits: splits"));
    assertThat(shown).anyMatch(text -> text.contains("building and verifying 10 configurations"));
    assertThat(study.charts()).containsOnlyKeys("splits");
    assertThat(study.headline()).contains("unfused");
    assertThat(study.table().stringColumn("method").get(0)).isEqualTo("unfused");
  }

  @Test
  void ownScheduleOfAttentionIsMeasuredBesideTunings() {
    var spec = OwnAttentionTest.SPEC;
    var study =
        tuned(
            2,
            world ->
                Tuner.on(world)
                    .attention(spec)
                    .methods(ContextParallel.Method.RING)
                    .splits(1)
                    .schedule("pushed", OwnAttentionTest.pushed(2, false)));
    assertThat(names(study)).containsExactly("ring, 1 split", "pushed");
    assertThat(study.reference()).isEqualTo(ContextParallel.unfused());
    assertThatThrownBy(
            () ->
                tuned(
                    2,
                    world ->
                        Tuner.on(world)
                            .attention(spec)
                            .schedule("wrong", OwnAttentionTest.pushed(2, true))))
        .hasMessageContaining("output@1");
  }

  @Test
  void optionsOfAttentionMakeAGrid() {
    var study =
        tuned(
            2,
            world ->
                Tuner.on(world)
                    .attention(ATTENTION)
                    .methods(ContextParallel.Method.RING, ContextParallel.Method.ULYSSES)
                    .splits(1, 2)
                    .streams(1, 2)
                    .transports(Transport.WORKERS));
    assertThat(names(study))
        .containsExactly(
            "ring, 1 split, over workers, 1 worker",
            "ring, 2 splits, over workers, 1 worker",
            "ring, 1 split, 2 streams, over workers, 1 worker",
            "ring, 2 splits, 2 streams, over workers, 1 worker",
            "ulysses, 1 split, over workers, 1 worker",
            "ulysses, 2 splits, over workers, 1 worker",
            // Ulysses computes each split on one stream.
            "ulysses, 2 splits, 2 streams, over workers, 1 worker");
    assertThat(study.charts()).containsOnlyKeys("configurations", "heatmap");
    assertThat(study.simplest().streams()).isEqualTo(1);
  }

  @Test
  void theBackwardPassIsTunedToo() {
    var study =
        tuned(
            2,
            world ->
                Tuner.on(world)
                    .attention(ATTENTION.backward().deterministic())
                    .overlaps(
                        ContextParallel.ring().splits(2),
                        ContextParallel.ring().neighborToNeighbor(),
                        ContextParallel.ulysses().replay())
                    .predictedOn(Machine.h200x8()));
    ContextParallel best = study.best();
    assertThat(study.medianNanos(best)).isPositive();
    assertThat(names(study))
        .containsExactly(
            "ring, 2 splits", "ring, 1 split, neighbor to neighbor", "ulysses, 1 split, replayed");
    assertThat(study.problem())
        .containsEntry("pattern", "attention backward")
        .containsEntry("deterministic", "true");
    assertThat(study.prediction().orElseThrow().nanos()).hasSize(4).allMatch(nanos -> nanos > 0);
  }

  @Test
  void layoutsAreComparedInOneStudy() {
    var study =
        tuned(
            2,
            world ->
                Tuner.on(world)
                    .attention(ATTENTION)
                    .layouts(TokenLayout.ZIGZAG, TokenLayout.CONTIGUOUS)
                    .methods(ContextParallel.Method.RING)
                    .splits(1, 2));
    LayoutTuning best = study.best();
    assertThat(study.configuration(best.toString())).isEqualTo(best);
    assertThat(study.reference())
        .isEqualTo(new LayoutTuning(TokenLayout.CONTIGUOUS, ContextParallel.unfused()))
        .hasToString("contiguous, unfused");
    assertThat(names(study))
        .containsExactly(
            "zigzag, unfused",
            "zigzag, ring, 1 split",
            "zigzag, ring, 2 splits",
            "contiguous, ring, 1 split",
            "contiguous, ring, 2 splits");
    assertThat(study.problem()).containsKey("sequence").doesNotContainKey("layout");
    assertThat(study.table().stringColumn("layout").asList())
        .containsExactly("contiguous", "zigzag", "zigzag", "zigzag", "contiguous", "contiguous");
  }

  @Test
  void aLongAttentionIsVerifiedOnItsFirstTokens() {
    var shown = new ConcurrentLinkedQueue<String>();
    var spec = AttentionSpec.of(2048, 1, 64).causal();
    LocalRanks.run(
        2,
        world -> {
          RankContext.current().outbox(new Shown(shown));
          var pipelines = new TunedPipelines(world, null);
          for (var problem : List.of(spec, spec.layout(TokenLayout.ZIGZAG).backward())) {
            var shorter = verified(pipelines, problem, 1);
            assertThat(shorter.flops()).isLessThanOrEqualTo(TunedPipelines.MOST_VERIFIED_FLOPS);
            assertThat(shorter.sequence()).isEqualTo(1024);
            // With a token for each split of each half shard.
            assertThat(verified(pipelines, problem, 300).sequence()).isEqualTo(2048);
          }
          assertThat(verified(pipelines, ATTENTION, 1)).isEqualTo(ATTENTION);

          var study =
              Tuner.on(world).attention(spec).overlaps(ContextParallel.ring()).repeats(6).run();
          assertThat(study.problem()).containsEntry("sequence", "2048");
          // Unfused and ring, each in both lengths.
          assertThat(world.counters()).containsEntry(Counter.PLANS_MADE.text(), 4L);
        });
    assertThat(shown)
        .anyMatch(
            text ->
                text.startsWith("plain loops verify a part of the tokens: ")
                    && text.contains("1024"));
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void candidatesAreTimedOnRealNumbersAndVerifiedOnIntegers(boolean ofGemm) {
    Problem problem = ofGemm ? GemmSpec.gemmAllReduce(8, 8, 8) : ATTENTION.backward();
    LocalRanks.run(
        2,
        world -> {
          var work =
              (Candidates.Work.OfChain)
                  new TunedPipelines(world, null, Drawn.REALS)
                      .build(problem, ofGemm ? Overlap.direct() : ContextParallel.ring());
          try {
            var pipeline = work.chain().pipelines().getFirst();
            var timed = ofGemm ? pipeline.weight() : pipeline.outputGradient();
            var before = timed.toFloats();
            assertThat(before).matches(TunedProblemsTest::hasFractions);
            var output = ofGemm ? pipeline.output() : pipeline.queryGradient();
            work.verify();
            assertThat(timed.toFloats()).isEqualTo(before);
            work.time(1, Timing.LATENCY);
            assertThat(output.toFloats()).matches(TunedProblemsTest::hasFractions);
          } finally {
            work.close();
          }
        });
  }

  private static boolean hasFractions(float... numbers) {
    boolean found = false;
    for (float each : numbers) {
      found |= each != Math.rint(each);
    }
    return found;
  }

  private static AttentionSpec verified(TunedPipelines pipelines, Problem problem, int splits) {
    var tuning = ContextParallel.ring().splits(splits);
    return TunedPipelines.attention(pipelines.verified(problem, tuning)).orElseThrow();
  }

  @Test
  void ownSchedulesStandBesideMethods(@TempDir Path directory) throws IOException {
    var study =
        tuned(
            4,
            world ->
                Tuner.on(world)
                    .gemm(GEMM)
                    .methods(Method.PIPELINED)
                    .splits(1, 2, 3)
                    .schedule(WrittenSchedules.twoLevel(GEMM, 4, 2).named("two levels"))
                    .schedules("backwards", splits -> WrittenSchedules.reversed(GEMM, 4, splits)));
    assertThat(study.reference()).isEqualTo(Overlap.unfused());
    assertThat(study.trials())
        .extracting(Study.Trial::configuration)
        .containsExactly(
            Overlap.pipelined(1),
            Overlap.pipelined(2),
            Overlap.pipelined(3),
            new Configuration.OwnSchedule("two levels", 0),
            new Configuration.OwnSchedule("backwards", 1),
            new Configuration.OwnSchedule("backwards", 2),
            new Configuration.OwnSchedule("backwards", 3));
    Configuration best = study.best();
    assertThat(study.configuration(best.toString())).isEqualTo(best);
    assertThat(study.table().stringColumn("method").asList())
        .containsExactly(
            "unfused",
            "pipelined",
            "pipelined",
            "pipelined",
            "two levels",
            "backwards",
            "backwards",
            "backwards");
    assertThat(study.table().intColumn("splits").isMissing(4)).isTrue();
    assertThatThrownBy(() -> study.cast(Overlap.class))
        .hasMessage(
            "the study's `two levels` is OwnSchedule, not Overlap; cast(Configuration.class) takes every kind");

    var run = Runs.in(directory).save(study);
    assertThat(Runs.in(directory).load(run.id())).isEqualTo(study);
    assertThat(Files.readString(run.directory().resolve("study.csv"))).contains("two levels,,");
    assertThat(Comparison.of(study, study).rows())
        .extracting(Comparison.Row::configuration)
        .contains("unfused", "two levels", "backwards, 3 splits");
  }

  @Test
  void aFamilyOfSchedulesIsACurve() {
    var study =
        tuned(
            2,
            world ->
                Tuner.on(world)
                    .gemm(GEMM)
                    .schedules("backwards", splits -> WrittenSchedules.reversed(GEMM, 2, splits))
                    .splits(1, 2, 4)
                    .overlaps(Overlap.direct(), Overlap.direct(2)));
    assertThat(names(study))
        .containsExactly(
            "direct, 1 split",
            "direct, 2 splits",
            "backwards, 1 split",
            "backwards, 2 splits",
            "backwards, 4 splits");
    assertThat(study.charts()).containsOnlyKeys("splits");
  }

  @Test
  void aWrongScheduleIsAnErrorAndNoResult() {
    var wrong = wrongSchedules();
    for (var each : wrong) {
      var shown = new ConcurrentLinkedQueue<String>();
      var failures = new ConcurrentLinkedQueue<String>();
      LocalRanks.run(
          2,
          world -> {
            RankContext.current().outbox(new Shown(shown));
            var tuner =
                Tuner.on(world).gemm(GEMM).splits(1).repeats(6).schedule("mine", each.schedule());
            var failure = catchThrowable(tuner::run);
            assertThat(failure).isInstanceOf(BraidException.class);
            failures.add(String.valueOf(failure.getMessage()));
            // The group works on.
            assertThat(Tuner.on(world).gemm(GEMM).splits(1).repeats(6).run().trials()).hasSize(1);
          });
      assertThat(failures).hasSize(2).allMatch(message -> message.contains(each.message()));
      assertThat(shown.stream().filter(text -> text.startsWith("published"))).hasSize(1);
    }
  }

  private record Wrong(Schedule schedule, String message) {}

  private static List<Wrong> wrongSchedules() {
    return List.of(
        new Wrong(OwnSchedule.pair(GEMM, OwnSchedule.Pair.At.WAIT, (_, _) -> {}), "signal"),
        new Wrong(OwnSchedule.pair(GEMM, OwnSchedule.Pair.At.MULTIPLY, (_, _) -> {}), "output"),
        new Wrong(
            WrittenSchedules.reversed(GemmSpec.allGatherGemm(48, 16, 8), 2, 1),
            "leave the problem out"),
        new Wrong(WrittenSchedules.reversed(GEMM, 3, 1), "3 ranks"));
  }

  @Test
  void anOptionThatDoesNotFitTheProblemIsRefused() {
    LocalRanks.run(
        3,
        world -> {
          var own = WrittenSchedules.reversed(GEMM, 3, 1);
          assertThat(refusal(() -> Tuner.on(world).attention(ATTENTION).methods(Method.RING).run()))
              .contains("is tuned by ContextParallel but was given `ring, 1 split`");
          assertThat(
                  refusal(
                      () -> Tuner.on(world).gemm(GEMM).methods(ContextParallel.Method.RING).run()))
              .contains("is tuned by Overlap but was given `ring, 1 split`");
          assertThat(
                  refusal(
                      () -> Tuner.on(world).gemm(GEMM).overlaps(ContextParallel.ulysses()).run()))
              .contains("is tuned by Overlap but was given `ulysses, 1 split`");
          assertThat(
                  refusal(
                      () ->
                          Tuner.on(world)
                              .attention(ATTENTION)
                              .methods(ContextParallel.Method.ULYSSES)
                              .run()))
              .isEqualTo(
                  "ulysses divides heads among 3 ranks, so heads and kvHeads must be multiples of 3 but were 4 and 4; try ring() for 3 ranks");
          assertThat(
                  refusal(
                      () ->
                          Tuner.on(world)
                              .attention(ATTENTION)
                              .methods(ContextParallel.Method.TWO_LEVEL)))
              .isEqualTo(
                  "two-level needs a number of ranks that can be divided into groups but group `world` has 3; leave it out");
          assertThat(refusal(() -> Tuner.on(world).gemm(GEMM).methods(Method.TWO_LEVEL)))
              .isEqualTo(
                  "two-level needs a number of ranks that can be divided into groups but group `world` has 3; leave it out");
          assertThat(refusal(() -> Tuner.on(world).attention(ATTENTION).splits(1, 22).run()))
              .startsWith("splits must be 1..21");
          assertThat(refusal(() -> Tuner.on(world).methods(ContextParallel.Method.UNFUSED)))
              .contains("leave out unfused");
          assertThat(refusal(() -> Tuner.on(world).gemm(GEMM).layouts(TokenLayout.ZIGZAG)))
              .startsWith("layouts are of attention but the problem is all-gather-gemm");
          assertThat(refusal(() -> Tuner.on(world).layouts(TokenLayout.ZIGZAG)))
              .isEqualTo(
                  "layouts are of attention but the problem is not set; call attention(spec) before");
          assertThat(
                  refusal(() -> Tuner.on(world).attention(ATTENTION).schedule("mine", own).run()))
              .contains("leave the problem out");
          assertThat(refusal(() -> Tuner.on(world).schedule("mine", own)))
              .isEqualTo(
                  "schedule `mine` needs a problem but none is set; call gemm(spec) or attention(spec) before");
          assertThat(refusal(() -> Tuner.on(world).gemm(GEMM).schedule("ring", own)))
              .startsWith("schedule `ring` has the name of another one or of a method");
          assertThat(
                  refusal(
                      () ->
                          Tuner.on(world)
                              .gemm(GEMM)
                              .schedule("mine", own)
                              .schedules("mine", _ -> own)))
              .startsWith("schedule `mine` has the name of another one");
          assertThat(refusal(() -> Tuner.on(world).gemm(GEMM).schedule(" ", own)))
              .startsWith("a schedule's name must not be blank");
          assertThat(refusal(() -> Tuner.on(world).gemm(GEMM).schedule(own)))
              .isEqualTo(
                  "a schedule in a study must have a name but has none; call own.named(\"mine\"), or schedule(\"mine\", own)");
          var before = Tuner.on(world).gemm(GEMM);
          var _ = before.schedule("mine", own);
          assertThat(refusal(before::run))
              .isEqualTo(
                  "`mine` needs another kind of study; run the tuner that schedule, schedules or layouts returned");
        });
  }

  private static String refusal(Runnable call) {
    var failure = catchThrowable(call::run);
    assertThat(failure).isInstanceOf(BraidException.class);
    return Objects.requireNonNull(failure.getMessage());
  }

  /// A query of the first tokens sees what it saw before, as far as it is among them.
  @Test
  void theFirstTokensOfASequenceKeepTheirMask() {
    var specs = new ArrayList<AttentionSpec>();
    for (var spec :
        List.of(
            AttentionSpec.of(40, 2, 8),
            AttentionSpec.of(40, 2, 8).packed(0, 7, 7, 20, 40),
            AttentionSpec.of(40, 2, 8)
                .packed(new int[] {0, 5, 12, 30}, new int[] {0, 9, 18, 40}))) {
      specs.addAll(List.of(spec, spec.causal(), spec.causal().window(5)));
    }
    for (var spec : specs) {
      for (int tokens = 1; tokens <= 40; tokens++) {
        var first = spec.first(tokens);
        assertThat(first.sequence()).isEqualTo(tokens);
        for (int query = 0; query < tokens; query++) {
          assertThat(seen(first, query, tokens)).isEqualTo(seen(spec, query, tokens));
        }
      }
      assertThat(spec.first(40)).isEqualTo(spec);
      assertThatThrownBy(() -> spec.first(41))
          .hasMessage("the first tokens must be 1..40 but were 41");
    }
  }

  private static List<Integer> seen(AttentionSpec spec, int query, int tokens) {
    return IntStream.range(0, tokens)
        .filter(key -> key >= spec.firstSeen(query) && key <= spec.lastSeen(query))
        .filter(key -> spec.packing().nextPadding(key) > key)
        .boxed()
        .toList();
  }
}
