package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import braid.evidence.Study;
import braid.internal.context.RankContext;
import braid.internal.rank.Outbox;
import braid.internal.report.json.StudyJson;
import braid.model.BraidException;
import braid.model.Configuration;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.HostLoad;
import braid.model.Method;
import braid.model.MimeBundle;
import braid.model.Overlap;
import braid.model.Priority;
import braid.model.Timing;
import braid.model.Transport;
import braid.schedule.simulation.Machine;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.Test;

class TunerTest {
  private static final GemmSpec SMALL = GemmSpec.allGatherGemm(24, 16, 8);

  /// Records the output of a rank, in order.
  private record Kept(
      ConcurrentLinkedQueue<MimeBundle> published, ConcurrentLinkedQueue<String> shown)
      implements Outbox {
    Kept() {
      this(new ConcurrentLinkedQueue<>(), new ConcurrentLinkedQueue<>());
    }

    @Override
    public void publish(MimeBundle bundle) {
      published.add(bundle);
    }

    @Override
    public void display(MimeBundle bundle, String displayId) {
      shown.add("display " + displayId + " " + bundle.text());
    }

    @Override
    public void update(MimeBundle bundle, String displayId) {
      shown.add("update " + displayId + " " + bundle.text());
    }
  }

  @Test
  void aStudyOfSeveralBuildsIsOne() {
    LocalRanks.run(
        2,
        world -> {
          var tuner = Tuner.on(world).gemm(SMALL.dtype(DType.FP32)).splits(1, 2);
          var published = new Kept();
          world.context().outbox(published);
          var study = tuner.repeats(8).builds(3).predictedOn(Machine.h200x8()).run();
          assertThat(study.builds()).containsExactly(3, 3, 3);
          assertThat(study.starts()).isEmpty();
          assertThat(study.trials()).allMatch(trial -> trial.nanos().size() == 9);
          assertThat(study.fastestOfParts()).hasSize(3);
          assertThat(study.headline()).contains("; fastest in 3 builds: ");
          assertThat(study.prediction()).isPresent();
          assertThat(Study.fromJson(study.toJson())).isEqualTo(study);
          if (world.rank() == 0) {
            assertThat(published.published()).hasSize(1);
          }
          assertThatThrownBy(() -> Tuner.on(world).gemm(SMALL).builds(0))
              .hasMessage("builds must be 1..100 but was 0; try builds(3)");
          assertThatThrownBy(
                  () ->
                      Tuner.on(world)
                          .steps("code")
                          .step("one", () -> {})
                          .step("two", () -> {})
                          .builds(2)
                          .run())
              .hasMessage(
                  "builds are of the pipelines of a problem but the tuner has steps, which you have built; leave it out, or call braid run --starts 2");
        });
  }

  @Test
  void aDescribedMachinePredictsEveryConfiguration() {
    LocalRanks.run(
        2,
        world -> {
          var study =
              Tuner.on(world)
                  .gemm(SMALL.dtype(DType.FP32))
                  .splits(1, 2)
                  .repeats(6)
                  .predictedOn(Machine.h200x8())
                  .run();
          var prediction = study.prediction().orElseThrow();
          assertThat(prediction.machine()).isEqualTo("h200x8, not calibrated");
          assertThat(prediction.nanos()).hasSize(3).allMatch(nanos -> nanos > 0);
          assertThat(study.table().columnNames()).contains("predicted ms");
          assertThat(study.timesCount()).isTrue();
          var plain =
              Tuner.on(world)
                  .steps("code")
                  .step("one", () -> {})
                  .step("two", () -> {})
                  .repeats(6)
                  .predictedOn(Machine.h200x8())
                  .run();
          assertThat(plain.prediction().orElseThrow().nanos()).containsExactly(0L, 0L);
        });
  }

  @Test
  void everyRankGetsTheSameStudyOfEveryConfiguration() {
    var studies = new ConcurrentLinkedQueue<Study<Overlap>>();

    LocalRanks.run(
        3,
        world ->
            studies.add(
                Tuner.on(world)
                    .gemm(SMALL)
                    .splits(1, 2, 8)
                    .streams(1, 2)
                    .methods(Method.PIPELINED, Method.DIRECT)
                    .repeats(6)
                    .warmup(0)
                    .run()));

    assertThat(studies).hasSize(3);
    var study = studies.element();
    assertThat(studies).allMatch(study::equals);
    assertThat(study.trials()).hasSize(3 * 2 * 2);
    assertThat(study.trials().getFirst().configuration()).isEqualTo(Overlap.pipelined(1));
    assertThat(study.trials().getLast().configuration()).isEqualTo(Overlap.direct(8).streams(2));
    assertThat(study.repeats()).isEqualTo(6);
    assertThat(study.ranks()).isEqualTo(3);
    assertThat(study.problem()).containsEntry("m", "24").containsEntry("backend", "host");
    assertThat(study.problem()).doesNotContainKeys("splits", "method");
    // The host does not report its clocks.
    assertThat(study.unfusedReadings()).isEmpty();
    assertThat(study.trials()).allMatch(trial -> trial.readings().isEmpty());
    assertThat(study.doubts())
        .isEqualTo(study.load().filter(HostLoad::isHigh).map(HostLoad::toString).stream().toList());
  }

  @Test
  void rankZeroTellsHowFarItIsAndPublishesTheStudy() {
    var ofRanks = List.of(new Kept(), new Kept());

    LocalRanks.run(
        2,
        world -> {
          RankContext.current().outbox(ofRanks.get(world.rank()));
          Tuner.on(world).gemm(SMALL).splits(2).repeats(6).run();
        });

    var shown = List.copyOf(ofRanks.get(0).shown());
    assertThat(shown.getFirst())
        .startsWith("display progress-")
        .contains("verifying 2 configurations");
    assertThat(shown.getLast()).startsWith("update progress-").contains("tuning 20/20 · done");
    assertThat(ofRanks.get(0).published())
        .filteredOn(b -> b.data().containsKey(StudyJson.MIME))
        .hasSize(1);
    assertThat(ofRanks.get(1).shown()).isEmpty();
    assertThat(ofRanks.get(1).published()).isEmpty();
  }

  @Test
  void aBudgetDecidesTheRoundsOnAllRanks() {
    var kept = new Kept();
    var studies = new ConcurrentLinkedQueue<Study<Overlap>>();
    LocalRanks.run(
        3,
        world -> {
          if (world.rank() == 0) {
            RankContext.current().outbox(kept);
          }
          // Only rank 0's clock and budget count.
          var budget = Duration.ofMillis(world.rank() == 0 ? 400 : 86_400_000);
          studies.add(Tuner.on(world).gemm(SMALL).splits(1, 2).budget(budget).run());
        });

    assertThat(studies).hasSize(3).allMatch(studies.element()::equals);
    assertThat(studies.element().load()).as("known after 200 ms").isPresent();
    int rounds = studies.element().repeats();
    assertThat(rounds).isBetween(Tuner.DEFAULT_REPEATS, Tuner.MAX_REPEATS);
    assertThat(List.copyOf(kept.shown()).getLast())
        .contains("tuning %1$d/%1$d · done after %2$d rounds".formatted(3 + 4 * rounds, rounds));
  }

  @Test
  void withoutTimeItMeasuresTheFirstRoundsAlone() {
    LocalRanks.run(
        2,
        world -> {
          var few = Tuner.on(world).gemm(SMALL).splits(1, 2).budget(Duration.ZERO).run();
          assertThat(few.repeats()).isEqualTo(Tuner.DEFAULT_REPEATS);
        });
  }

  @Test
  void anOrderThatIsGivenIsKept() {
    LocalRanks.run(
        2,
        world -> {
          // rank 0's seed applies to all ranks
          long seed = 41L + world.rank();
          var study = Tuner.on(world).gemm(SMALL).splits(2).repeats(6).seed(seed).run();
          assertThat(study.seed()).isEqualTo(41);
          assertThatThrownBy(() -> Tuner.on(world).seed(1).seed(2))
              .hasMessage("seed was set already: 1; set it once");
        });
  }

  @Test
  void aStudyNamesTheFormOfItsTimes() {
    LocalRanks.run(
        2,
        world -> {
          var study =
              Tuner.on(world).gemm(SMALL).splits(2).repeats(6).timing(Timing.BACK_TO_BACK).run();
          assertThat(study.problem()).containsEntry("timing", "back_to_back");
          study = Tuner.on(world).gemm(SMALL).splits(2).repeats(6).timing(Timing.LATENCY).run();
          assertThat(study.problem()).doesNotContainKey("timing");
          assertThatThrownBy(() -> Tuner.on(world).timing(Timing.LATENCY).timing(Timing.LATENCY))
              .hasMessage("timing was set already: latency; set it once");
        });
  }

  /// The times are those that the steps take: one of them keeps one rank busy for longer, and the
  /// slowest rank counts.
  @Test
  void stepsOfAnyKindAreMeasuredInTheSameRounds() {
    var studies = new ConcurrentLinkedQueue<Study<Configuration.Named>>();
    var runs = new ConcurrentLinkedQueue<String>();
    LocalRanks.run(
        2,
        world ->
            studies.add(
                Tuner.on(world)
                    .steps("waiting")
                    .step("2 ms", () -> busy(2, "2 ms", world, runs))
                    .step("2 ms again", () -> busy(2, "2 ms again", world, runs))
                    .step("6 ms on rank 1", () -> busy(world.rank() == 1 ? 6 : 0, "6", world, runs))
                    .repeats(8)
                    .seed(3)
                    .run()));

    assertThat(studies).hasSize(2).allMatch(studies.element()::equals);
    var study = studies.element();
    assertThat(study.repeats()).isEqualTo(8);
    assertThat(study.reference().toString()).isEqualTo("2 ms");
    assertThat(study.problem())
        .containsEntry("steps", "waiting")
        .doesNotContainKeys("timing", "method");
    // A warm-up run and a timed one per measurement; the reference is measured twice per round.
    assertThat(runs.stream().filter("2 ms"::equals).count()).isEqualTo(2 * 2 * 8);
    assertThat(runs.stream().filter("2 ms again"::equals).count()).isEqualTo(2 * 8);
    // Nothing takes less time than it is busy.
    assertThat(study.unfusedFirst()).allMatch(nanos -> nanos >= 2_000_000);
    assertThat(study.unfusedAgain()).allMatch(nanos -> nanos >= 2_000_000);
    assertThat(study.trials().get(0).nanos()).allMatch(nanos -> nanos >= 2_000_000);
    assertThat(study.trials().get(1).nanos()).allMatch(nanos -> nanos >= 6_000_000);
    assertThat(study.medianNanos(study.configuration("6 ms on rank 1")))
        .isEqualTo(study.trials().get(1).medianNanos());
    assertThat(study.medianNanos(study.configuration("2 ms")))
        .isEqualTo(study.unfusedMedianNanos());
    assertThat(Study.fromJson(study.toJson())).isEqualTo(study);
  }

  private static void busy(
      int millis, String name, ProcessGroup world, ConcurrentLinkedQueue<String> runs) {
    if (world.rank() == 0) {
      runs.add(name);
    }
    long start = System.nanoTime();
    while (System.nanoTime() - start < millis * 1_000_000L) {
      Thread.onSpinWait();
    }
  }

  @Test
  void aTunerOfStepsRefusesWhatHasNoEffect() {
    LocalRanks.run(
        1,
        world -> {
          Runnable nothing = () -> {};
          assertThatThrownBy(() -> Tuner.on(world).step("a", nothing))
              .hasMessage(
                  "step `a` needs the problem's name first; call steps(\"backward\") before");
          var one = Tuner.on(world).steps("s").step("a", nothing);
          assertThatThrownBy(() -> one.step("a", nothing))
              .hasMessage("step `a` was given already; give each its own name");
          assertThatThrownBy(one::run)
              .hasMessageStartingWith(
                  "steps are compared with the first, so there must be 2 or more but were 1");
          assertThatThrownBy(() -> one.gemm(SMALL))
              .hasMessage("problem was set already: s; set it once");
          assertThatThrownBy(() -> Tuner.on(world).gemm(SMALL).steps("s"))
              .hasMessageStartingWith("problem was set already: all-gather-gemm");
          var two = Tuner.on(world).steps("s").step("a", nothing).step("b", nothing);
          assertThatThrownBy(() -> two.splits(2).run())
              .hasMessage("splits has no effect beside steps, which was s; set one of the two");
          var flying = Tuner.on(world).steps("s").step("a", nothing).step("b", nothing);
          assertThatThrownBy(() -> flying.timing(Timing.BACK_TO_BACK).run())
              .hasMessageStartingWith("timing must be latency if a step is code");
          assertThatThrownBy(() -> Tuner.on(world).steps("s").step(" ", nothing))
              .hasMessageStartingWith("a step's name must not be blank");
          assertThatThrownBy(() -> Tuner.on(world).steps(" "))
              .hasMessageStartingWith("the steps' problem must not be blank");
        });
  }

  @Test
  void ranksWithDifferentStepsAreNamed() {
    LocalRanks.run(
        2,
        world -> {
          var failed =
              catchThrowable(
                  () ->
                      Tuner.on(world)
                          .steps("s")
                          .step("a", () -> {})
                          .step(world.rank() == 0 ? "b" : "c", () -> {})
                          .run());
          assertThat(failed).isInstanceOf(BraidException.class);
          assertThat(failed).hasMessageContaining("a, b").hasMessageContaining("a, c");
        });
  }

  @Test
  void tooFewRoundsAreToldBeforeTheFirst() {
    var kept = new Kept();
    LocalRanks.run(
        2,
        world -> {
          RankContext.current().outbox(kept);
          Tuner.on(world).gemm(SMALL).splits(1, 2, 3, 4, 5, 6).repeats(8).run();
          Tuner.on(world).gemm(SMALL).splits(1).repeats(8).run();
        });
    var shown = List.copyOf(kept.shown());
    var note =
        "8 rounds are too few to call one of 6 configurations better; it takes 10: repeats(10)";
    assertThat(shown).filteredOn(text -> text.endsWith(note)).hasSize(1);
    int index =
        shown.indexOf(shown.stream().filter(text -> text.endsWith(note)).findFirst().orElseThrow());
    assertThat(shown.subList(0, index))
        .noneMatch(text -> text.contains("verified") || text.contains("split"));
  }

  @Test
  void oneRankAloneTunesToo() {
    LocalRanks.run(
        1,
        world -> {
          var study = Tuner.on(world).gemm(SMALL).splits(1, 2).repeats(6).run();
          assertThat(study.trials()).hasSize(2);
          assertThat(study.headline()).isNotBlank();
        });
  }

  @Test
  void illegalSplitsAreRefusedBeforeAnythingRuns() {
    var kept = new Kept();
    assertThatThrownBy(
            () ->
                LocalRanks.run(
                    2,
                    world -> {
                      RankContext.current().outbox(kept);
                      Tuner.on(world).gemm(SMALL).splits(2, 13).repeats(6).run();
                    }))
        .hasMessage("splits must be 1..12 (rows of the smallest shard) but was 13; try 12 splits");
    assertThat(kept.published()).isEmpty();
    assertThat(kept.shown()).noneMatch(text -> text.contains("· pipelined"));
  }

  @Test
  void theGridHasTransportsTooAndBulkOnceOverEach() {
    var problem =
        GemmSpec.besideAllGather(24, 16, 8, 100).dtype(DType.FP8_E4M3).output(DType.FP8_E5M2);
    LocalRanks.run(
        2,
        world -> {
          var study =
              Tuner.on(world)
                  .gemm(problem)
                  .methods(Method.RING, Method.BULK)
                  .transports(Transport.WORKERS, Transport.COPY_ENGINE)
                  .splits(1, 2)
                  .repeats(6)
                  .warmup(0)
                  .run();
          assertThat(study.trials())
              .extracting(Study.Trial::configuration)
              .containsExactly(
                  Overlap.ring(1).over(Transport.WORKERS),
                  Overlap.ring(2).over(Transport.WORKERS),
                  Overlap.ring(1),
                  Overlap.ring(2),
                  Overlap.bulk().over(Transport.WORKERS),
                  Overlap.bulk());
          assertThat(study.problem()).containsEntry("beside", "100");
        });
  }

  @Test
  void listedConfigurationsAreTriedAsTheyAre() {
    var listed =
        List.of(
            Overlap.pipelined(2).streams(2),
            Overlap.direct(3).priority(Priority.GEMM),
            Overlap.direct());
    LocalRanks.run(
        2,
        world -> {
          var study =
              Tuner.on(world).gemm(SMALL).overlaps(listed.toArray(Overlap[]::new)).repeats(6).run();
          assertThat(study.trials()).extracting(Study.Trial::configuration).isEqualTo(listed);
        });
  }

  @Test
  void anImpossibleTuningIsRefusedBeforeAnyMeasurement() {
    for (var wrong : List.of(Overlap.bulk(), Overlap.pipelined(2).boundaries(0, 5, 11))) {
      var kept = new Kept();
      LocalRanks.run(
          2,
          world -> {
            RankContext.current().outbox(kept);
            var refused =
                catchThrowable(() -> Pipeline.on(world).gemm(SMALL).overlap(wrong).build());
            assertThat(refused).isInstanceOf(BraidException.class);
            var tuner =
                Tuner.on(world).gemm(SMALL).overlaps(Overlap.pipelined(2), wrong).repeats(6);
            assertThatThrownBy(tuner::run)
                .isInstanceOf(BraidException.class)
                .hasMessage(refused.getMessage());
          });
      assertThat(kept.published()).isEmpty();
      assertThat(kept.shown()).isEmpty();
    }
  }

  @Test
  void aRankThatFailsReleasesTheOthersWithItsCause() {
    assertThatThrownBy(
            () ->
                LocalRanks.run(
                    2,
                    world -> {
                      if (world.rank() == 1) {
                        throw new IllegalStateException("no GPU today");
                      }
                      Tuner.on(world).gemm(SMALL).splits(2).repeats(6).run();
                    }))
        .hasStackTraceContaining("no GPU today");
  }

  @Test
  void contradictionsAreRefusedAtTheCall() {
    LocalRanks.run(
        1,
        world -> {
          assertThatThrownBy(() -> Tuner.on(world).run()).hasMessageContaining("call gemm(spec)");
          assertThatThrownBy(() -> Tuner.on(world).splits(1).splits(2))
              .hasMessage("splits was set already: [1]; set it once");
          assertThatThrownBy(() -> Tuner.on(world).gemm(SMALL).gemm(SMALL))
              .hasMessageContaining("problem was set already: all-gather-gemm");
          assertThatThrownBy(() -> Tuner.on(world).splits())
              .hasMessage("splits must be one or more different values but were ()");
          assertThatThrownBy(() -> Tuner.on(world).streams(2, 2))
              .hasMessage("streams must be one or more different values but were (2, 2)");
          assertThatThrownBy(() -> Tuner.on(world).methods(Method.UNFUSED))
              .hasMessageContaining("leave out unfused");
          assertThatThrownBy(
                  () -> Tuner.on(world).gemm(SMALL).methods(Method.BULK).splits(2, 4).run())
              .hasMessage(
                  "bulk has 1 split and 1 stream, but splits [2, 4] was given; leave it out, or add"
                      + " a method");
          assertThatThrownBy(
                  () -> Tuner.on(world).splits(2).overlaps(Overlap.pipelined(2).replay()))
              .hasMessageStartingWith("overlaps lists every configuration, so splits, streams,");
          assertThatThrownBy(
                  () -> Tuner.on(world).overlaps(Overlap.ring()).transports(Transport.WORKERS))
              .hasMessageStartingWith("transports has no effect beside overlaps");
          assertThatThrownBy(() -> Tuner.on(world).overlaps(Overlap.ring(), Overlap.ring()))
              .hasMessageStartingWith("overlaps must be one or more different values but were (");
          assertThatThrownBy(() -> Tuner.on(world).overlaps(Overlap.unfused()))
              .hasMessageContaining("leave out unfused, it is always measured");
          assertThatThrownBy(() -> Tuner.on(world).transports(Transport.WORKERS, Transport.WORKERS))
              .hasMessage(
                  "transports must be one or more different values but were (workers, workers)");
          assertThatThrownBy(() -> Tuner.on(world).repeats(5))
              .hasMessage("repeats must be 6..10000 but was 5; try repeats(12)");
          assertThatThrownBy(() -> Tuner.on(world).repeats(6).budget(Duration.ofSeconds(1)))
              .hasMessage("budget has no effect beside repeats, which was 6; set one of the two");
          assertThatThrownBy(() -> Tuner.on(world).budget(Duration.ofSeconds(1)).repeats(6))
              .hasMessage(
                  "repeats has no effect beside budget, which was PT1S; set one of the two");
          assertThatThrownBy(() -> Tuner.on(world).budget(Duration.ofSeconds(-1)))
              .hasMessage(
                  "budget must be 0 s..86400 s but was PT-1S; try budget(Duration.ofSeconds(20))");
          assertThatThrownBy(() -> Tuner.on(world).warmup(-1))
              .hasMessage("warmup must be 0..1000 but was -1; try warmup(1)");
          assertThatThrownBy(() -> Tuner.on(world).gemm(SMALL).splits(0).run())
              .hasMessageContaining("splits must be 1 or more but was 0");
        });
  }

  @Test
  void defaultsAreTheDocumentedOnes() {
    assertThat(Tuner.DEFAULT_SPLITS).containsExactly(1, 2, 4, 8, 16);
    assertThat(Tuner.DEFAULT_STREAMS).containsExactly(1);
    assertThat(Tuner.DEFAULT_METHODS).containsExactly(Method.PIPELINED);
    assertThat(Tuner.DEFAULT_TRANSPORTS).containsExactly(Transport.COPY_ENGINE);
    assertThat(Tuner.DEFAULT_REPEATS).isEqualTo(12);
    assertThat(Tuner.DEFAULT_BUDGET).isEqualTo(Duration.ofSeconds(20));
    assertThat(Tuner.DEFAULT_WARMUP).isEqualTo(1);
  }
}
