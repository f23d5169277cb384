package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.evidence.Study;
import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.Configuration;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Method;
import braid.model.Overlap;
import braid.model.Problem;
import braid.model.Tuning;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SearchTest {
  private static final Duration LONG = Duration.ofHours(1);
  private static final Machine MACHINE = Machine.h100x8();
  private static final int RANKS = 4;
  private static final int ROUNDS = 6;

  /// A machine whose times are the simulation's, distorted: each method by a factor of its own,
  /// each tuning by up to 3%, each time by up to 1%.
  private static final class Distorted {
    private final Problem problem;
    private final Random random;
    private final Map<Tuning, Double> nanos = new LinkedHashMap<>();
    private final LinkedHashSet<Tuning> measured = new LinkedHashSet<>();

    Distorted(Problem problem, List<Tuning> all, long seed) {
      this.problem = problem;
      random = new Random(seed);
      var factors =
          Stream.of(Method.values())
              .collect(Collectors.toMap(method -> method, _ -> 0.8 + 0.4 * random.nextDouble()));
      Stream.concat(Stream.of(Overlap.unfused()), all.stream())
          .forEach(
              tuning -> {
                double simulated =
                    Schedule.of(problem, tuning, RANKS)
                        .simulate(MACHINE, 3)
                        .summary()
                        .medianNanos();
                double factor = factors.getOrDefault(((Overlap) tuning).method(), 1.0);
                nanos.put(tuning, simulated * factor * (0.97 + 0.06 * random.nextDouble()));
              });
    }

    Study<?> measure(Collection<Tuning> tunings) {
      measured.addAll(tunings);
      return new Study<Configuration>(
          new LinkedHashMap<>(problem.columns()),
          RANKS,
          1,
          times(Overlap.unfused()),
          times(Overlap.unfused()),
          tunings.stream()
              .map(tuning -> new Study.Trial<Configuration>(tuning, times(tuning)))
              .toList(),
          Overlap.unfused());
    }

    private List<Long> times(Tuning tuning) {
      return random
          .doubles(ROUNDS, 0.99, 1.01)
          .mapToObj(noise -> Math.round(nanos.getOrDefault(tuning, 0.0) * noise))
          .toList();
    }

    Tuning fastest() {
      return nanos.entrySet().stream()
          .filter(each -> !each.getKey().equals(Overlap.unfused()))
          .min(Map.Entry.comparingByValue())
          .orElseThrow()
          .getKey();
    }
  }

  private static List<Tuning> all(ProcessGroup world, Problem problem) {
    var grid = new Grid(world);
    grid.whole();
    return grid.possible(problem, true, new ArrayList<>());
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
  void aSearchMeasuresAThirdAndFindsTheFastest(long seed) {
    var spec =
        seed % 2 == 0
            ? GemmSpec.allGatherGemm(8192, 7168, 4096).dtype(DType.BF16)
            : GemmSpec.gemmReduceScatter(4096, 8192, 7168).dtype(DType.BF16);
    LocalRanks.run(
        RANKS,
        world -> {
          var all = all(world, spec);
          // Every rank measures the same times, as ranks do that exchange them.
          var machine = new Distorted(spec, all, seed);
          var notes = new ArrayList<String>();
          var finalists =
              new Search(world, spec, all, Optional.of(MACHINE))
                  .finalists(machine::measure, LONG, notes);
          assertThat(machine.measured).hasSizeLessThanOrEqualTo(all.size() / 3);
          assertThat(finalists).contains(machine.fastest());
          assertThat(finalists).hasSizeLessThanOrEqualTo(Search.MOST_FINALISTS);
          assertThat(notes)
              .singleElement()
              .asString()
              .startsWith(
                  "searched %d configurations: predicted on h100x8, not calibrated, measured %d; "
                      .formatted(all.size(), machine.measured.size()));
        });
  }

  @Test
  void aSpentBudgetEndsTheSearchAfterTheFirstBatches() {
    var spec = GemmSpec.allGatherGemm(8192, 7168, 4096).dtype(DType.BF16);
    LocalRanks.run(
        RANKS,
        world -> {
          var all = all(world, spec);
          var machine = new Distorted(spec, all, 1);
          var _ =
              new Search(world, spec, all, Optional.of(MACHINE))
                  .finalists(machine::measure, Duration.ZERO, new ArrayList<>());
          // One tuning for each method, transport, and replayed or not.
          assertThat(machine.measured).hasSize(4 * 2 * 2);
        });
  }

  @Test
  void withoutPredictionsAllAreMeasured() {
    var spec = AttentionSpec.of(64, 4, 8);
    var withoutRates =
        Machine.parse(
            MACHINE
                .toString()
                .lines()
                .filter(line -> !line.startsWith("gemm fp32 "))
                .collect(Collectors.joining("\n")));
    LocalRanks.run(
        2,
        world -> {
          var all = all(world, spec);
          var measured = new LinkedHashSet<Tuning>();
          var notes = new ArrayList<String>();
          var _ =
              new Search(world, spec, all, Optional.of(withoutRates))
                  .finalists(
                      tunings -> {
                        measured.addAll(tunings);
                        return new Study<Configuration>(
                            new LinkedHashMap<>(spec.columns()),
                            2,
                            1,
                            List.of(9L, 9L, 9L, 9L, 9L, 9L),
                            List.of(9L, 9L, 9L, 9L, 9L, 9L),
                            tunings.stream()
                                .map(
                                    tuning ->
                                        new Study.Trial<Configuration>(
                                            tuning, List.of(8L, 8L, 8L, 8L, 8L, 8L)))
                                .toList(),
                            ContextParallel.unfused());
                      },
                      LONG,
                      notes);
          assertThat(measured).containsExactlyInAnyOrderElementsOf(all);
          assertThat(notes).singleElement().asString().contains("all were measured");
        });
  }

  @Test
  void aTunerSearchesOnThisHost() {
    var studies = new ConcurrentLinkedQueue<Study<Overlap>>();
    LocalRanks.run(
        2,
        world ->
            studies.add(
                Tuner.on(world)
                    .gemm(GemmSpec.gemmReduceScatter(48, 16, 8))
                    .search()
                    .budget(Duration.ofSeconds(1))
                    .run()));
    assertThat(studies).hasSize(2).allMatch(studies.element()::equals);
    assertThat(studies.element().trials())
        .hasSizeBetween(1, Search.MOST_FINALISTS)
        .extracting(Study.Trial::configuration)
        .isSortedAccordingTo(Comparator.comparing((Overlap tuning) -> tuning.method()));
  }

  @Test
  void aGivenOptionNarrowsTheSearch() {
    LocalRanks.run(
        2,
        world -> {
          var study =
              Tuner.on(world)
                  .gemm(GemmSpec.allGatherGemm(48, 16, 8))
                  .search()
                  .methods(Method.RING)
                  .splits(1, 3)
                  .budget(Duration.ZERO)
                  .run();
          assertThat(study.trials())
              .isNotEmpty()
              .allMatch(trial -> trial.configuration().method() == Method.RING)
              .allMatch(trial -> List.of(1, 3).contains(trial.configuration().splits()));
        });
  }

  @Test
  void aSearchWithoutEffectIsRefused() {
    LocalRanks.run(
        2,
        world -> {
          var spec = GemmSpec.allGatherGemm(48, 16, 8);
          assertThatThrownBy(
                  () -> Tuner.on(world).gemm(spec).overlaps(Overlap.ring()).search().run())
              .isInstanceOf(BraidException.class)
              .hasMessage(
                  "search has no effect beside overlaps, which lists every configuration; leave it out");
          assertThatThrownBy(() -> Tuner.on(world).gemm(spec).search().overlaps(Overlap.ring()))
              .hasMessage(
                  "overlaps lists every configuration, so search has no effect beside it; leave it out");
          assertThatThrownBy(() -> Tuner.on(world).gemm(spec).search().search())
              .hasMessage("search was set already: search(); set it once");
          assertThatThrownBy(
                  () ->
                      Tuner.on(world)
                          .steps("code")
                          .step("one", () -> {})
                          .step("two", () -> {})
                          .search()
                          .run())
              .hasMessage(
                  "search is for the tunings of a problem but the tuner has steps; leave it out");
        });
  }
}
