package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.evidence.Decision;
import braid.evidence.Study;
import braid.internal.rank.Outbox;
import braid.model.BraidException;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Method;
import braid.model.MimeBundle;
import braid.model.Overlap;
import braid.model.Problem;
import braid.model.Tuning;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SearchTest {
  private static final Duration LONG = Duration.ofHours(1);
  private static final Machine MACHINE = Machine.h100x8();
  private static final int RANKS = 4;
  private static final int STUDY_ROUNDS = 24;

  private static List<Simulated> problems = List.of();

  @TempDir private Path folder;

  /// A problem with its tunings and their simulated times.
  private record Simulated(GemmSpec problem, List<Tuning> all, Map<Tuning, Double> nanos) {
    static Simulated of(GemmSpec problem) {
      var all = new AtomicReference<List<Tuning>>(List.of());
      LocalRanks.run(
          RANKS,
          world -> {
            var found = SearchTest.all(world, problem);
            if (world.rank() == 0) {
              all.set(found);
            }
          });
      var found = Objects.requireNonNull(all.get());
      var nanos = new LinkedHashMap<Tuning, Double>();
      Stream.concat(Stream.of(Overlap.unfused()), found.stream())
          .forEach(
              tuning ->
                  nanos.put(
                      tuning,
                      Schedule.of(problem, tuning, RANKS)
                          .simulate(MACHINE, 3)
                          .summary()
                          .medianNanos()));
      return new Simulated(problem, found, nanos);
    }

    double nanos(Tuning tuning) {
      return nanos.getOrDefault(tuning, 0.0);
    }

    Search.Predictions predictions() {
      return new Search.Predictions(
          MACHINE.title(),
          all.stream()
              .collect(
                  Collectors.toMap(
                      tuning -> tuning, tuning -> nanos(tuning) / nanos(Overlap.unfused()))));
    }
  }

  /// A machine whose times are the simulation's, distorted: each method by a factor of its own, and
  /// by another one for each doubling of the splits; each tuning by up to 3%, each round by up to
  /// 5%, each time by up to 2%. The times of a tuning depend on how often it was measured, so that
  /// an interrupted search sees the times that it would have seen.
  private static final class Distorted {
    private final Simulated simulated;
    private final long seed;
    private final Map<Tuning, Double> nanos = new LinkedHashMap<>();
    private final Map<Tuning, Integer> rounds = new LinkedHashMap<>();

    Distorted(Simulated simulated, long seed) {
      this.simulated = simulated;
      this.seed = seed;
      var random = new Random(seed);
      var factors = factors(random, 0.8, 1.2);
      var perDoubling = factors(random, 0.97, 1.03);
      Stream.concat(Stream.of(Overlap.unfused()), simulated.all().stream())
          .forEach(
              tuning -> {
                var method = ((Overlap) tuning).method();
                double doublings = Math.log(tuning.count("splits", 1)) / Math.log(2);
                double factor =
                    factors.getOrDefault(method, 1.0)
                        * Math.pow(perDoubling.getOrDefault(method, 1.0), doublings);
                nanos.put(tuning, simulated.nanos(tuning) * factor * random.nextDouble(0.97, 1.03));
              });
    }

    private static Map<Method, Double> factors(Random random, double low, double high) {
      return Stream.of(Method.values())
          .collect(Collectors.toMap(method -> method, _ -> random.nextDouble(low, high)));
    }

    Study<Overlap> measure(Collection<Tuning> tunings, int count) {
      var moods = new Random(seed + 17L * rounds.values().stream().mapToInt(each -> each).sum());
      var mood = moods.doubles(count, 0.95, 1.05).toArray();
      return new Study<>(
          new LinkedHashMap<>(simulated.problem().columns()),
          RANKS,
          1,
          times(Overlap.unfused(), mood),
          times(Overlap.unfused(), mood),
          tunings.stream()
              .map(tuning -> new Study.Trial<>((Overlap) tuning, times(tuning, mood)))
              .toList(),
          Overlap.unfused());
    }

    private List<Long> times(Tuning tuning, double[] mood) {
      int before = rounds.merge(tuning, mood.length, Integer::sum) - mood.length;
      var random = new Random(seed + 31L * before + tuning.toString().hashCode());
      return Arrays.stream(mood)
          .mapToObj(
              factor ->
                  Math.round(
                      nanos.getOrDefault(tuning, 0.0) * factor * random.nextDouble(0.98, 1.02)))
          .toList();
    }

    Set<Tuning> measured() {
      return rounds.keySet().stream()
          .filter(tuning -> !tuning.equals(Overlap.unfused()))
          .collect(Collectors.toSet());
    }

    Tuning fastest() {
      return nanos.entrySet().stream().min(Map.Entry.comparingByValue()).orElseThrow().getKey();
    }

    double regret(Tuning tuning) {
      return nanos.getOrDefault(tuning, 0.0) / nanos.getOrDefault(fastest(), 1.0) - 1;
    }
  }

  /// Keeps the lines that are shown.
  private record Lines(List<String> lines) implements Outbox {
    @Override
    public void publish(MimeBundle bundle) {}

    @Override
    public void display(MimeBundle bundle, String displayId) {
      lines.add(bundle.text());
    }

    @Override
    public void update(MimeBundle bundle, String displayId) {}
  }

  private static List<Tuning> all(ProcessGroup world, Problem problem) {
    var grid = new Grid(world, null);
    grid.whole();
    return grid.possible(problem, true, new ArrayList<>());
  }

  private SearchSamples samples(ProcessGroup world, String search) {
    var conditions = new LinkedHashMap<String, String>();
    conditions.put("search", search);
    return new SearchSamples(world, folder.resolve(search + ".samples"), conditions);
  }

  @BeforeAll
  static void simulate() {
    problems =
        List.of(
            Simulated.of(GemmSpec.allGatherGemm(8192, 7168, 4096).dtype(DType.BF16)),
            Simulated.of(GemmSpec.gemmReduceScatter(4096, 8192, 7168).dtype(DType.BF16)));
  }

  @Test
  void aHundredSearchesLoseAtMostOnePercent() {
    var regrets = new ArrayList<Double>();
    var lost = new ArrayList<String>();
    LocalRanks.run(
        1,
        world -> {
          for (long seed = 1; seed <= 100; seed++) {
            var simulated = problems.get((int) seed % problems.size());
            var machine = new Distorted(simulated, seed);
            var finalists =
                new Search(
                        world, simulated.all(), simulated.predictions(), LONG, Duration.ofNanos(1))
                    .finalists(machine::measure, samples(world, "of-" + seed), new ArrayList<>());
            assertThat(machine.measured())
                .hasSizeLessThanOrEqualTo((int) (simulated.all().size() * Search.MOST_MEASURED));
            assertThat(finalists).hasSizeLessThanOrEqualTo(Search.MOST_FINALISTS);
            var study = machine.measure(finalists, STUDY_ROUNDS);
            var chosen = Decision.taken(study);
            regrets.add(machine.regret(chosen));
            var equals = new ArrayList<>(study.ties());
            equals.add(study.best());
            equals.addAll(study.undecided());
            if (!equals.contains((Overlap) machine.fastest())) {
              lost.add("seed %d lost %s".formatted(seed, machine.fastest()));
            }
          }
        });
    regrets.sort(null);
    assertThat(regrets.get(94)).isLessThanOrEqualTo(0.01);
    assertThat(lost).isEmpty();
  }

  @Test
  void anInterruptedSearchGoesOnAndDecidesTheSame() {
    var simulated = problems.getFirst();
    LocalRanks.run(
        1,
        world -> {
          var lines = new ArrayList<String>();
          world.context().outbox(new Lines(lines));
          var whole = new Distorted(simulated, 7);
          var expected =
              new Search(world, simulated.all(), simulated.predictions(), LONG, Duration.ofNanos(1))
                  .finalists(whole::measure, samples(world, "whole"), new ArrayList<>());
          assertThat(lines).isEmpty();
          var machine = new Distorted(simulated, 7);
          var measured = new AtomicInteger();
          Search.Measuring interrupted =
              (tunings, rounds) -> {
                if (measured.incrementAndGet() > 3) {
                  throw new IllegalStateException("interrupted");
                }
                return machine.measure(tunings, rounds);
              };
          assertThatThrownBy(
                  () ->
                      new Search(
                              world,
                              simulated.all(),
                              simulated.predictions(),
                              LONG,
                              Duration.ofNanos(1))
                          .finalists(interrupted, samples(world, "cut"), new ArrayList<>()))
              .hasMessage("interrupted");
          var resumed =
              new Search(world, simulated.all(), simulated.predictions(), LONG, Duration.ofNanos(1))
                  .finalists(machine::measure, samples(world, "cut"), new ArrayList<>());
          assertThat(resumed).isEqualTo(expected);
          // Nothing was measured twice.
          assertThat(machine.rounds).isEqualTo(whole.rounds);
          // Three batches: the first of each of 18 kinds, six rounds each.
          assertThat(lines)
              .containsExactly(
                  "the search goes on with 108 samples of an earlier one that did not end");
        });
  }

  @Test
  void samplesOfAnotherDayOrVersionAreNotUsed() throws Exception {
    var simulated = problems.getFirst();
    var machine = new Distorted(simulated, 1);
    var lines = new ArrayList<String>();
    LocalRanks.run(
        1,
        world -> {
          world.context().outbox(new Lines(lines));
          var kept = samples(world, "kept");
          var now = Clock.systemUTC().instant();
          var study = machine.measure(simulated.all().subList(0, 2), 6);
          var older = new SearchSamples.Batch(now.minus(Duration.ofHours(25)), 1, study);
          var recent = new SearchSamples.Batch(now.minus(Duration.ofHours(23)), 1, study);
          kept.keep(List.of(older, recent));
          assertThat(kept.read()).containsExactly(recent);
          var changed = new LinkedHashMap<>(kept.conditions());
          changed.put("openblas", "0.3.99");
          assertThat(new SearchSamples(world, kept.file(), changed).read()).isEmpty();
          kept.forget();
          assertThat(kept.read()).isEmpty();
          assertThat(lines)
              .containsExactly(
                  "the search goes on with 12 samples of an earlier one that did not end");
          Files.writeString(kept.file(), "{");
          assertThat(kept.read()).isEmpty();
          assertThat(lines.getLast())
              .startsWith("the samples %s of an earlier search cannot".formatted(kept.file()));
        });
  }

  /// Of 18 kinds: methods, transports, replayed or not; one kernel only with one method.
  @Test
  void theFirstOfEachKindIsMeasuredWithinTheBudget() {
    assertThat(measured(Duration.ofSeconds(100), Duration.ofMillis(500), new ArrayList<>()))
        .hasSizeGreaterThanOrEqualTo(4 * 2 * 2 + 2);
  }

  @Test
  void aLongIterationMakesSmallBatches() {
    var notes = new ArrayList<String>();
    // 50 s are enough for 6 rounds of the reference, twice, and of two tunings.
    assertThat(measured(Duration.ofSeconds(50), Duration.ofSeconds(2), notes)).isNotEmpty();
    assertThat(notes.getLast())
        .contains("one measurement takes 2.0 s", "a budget of 50.0 s compares 1 of");
  }

  @Test
  void predictionsChooseIfNoBatchFitsTheBudget() {
    var notes = new ArrayList<String>();
    assertThat(measured(Duration.ofSeconds(10), Duration.ofSeconds(4), notes)).isEmpty();
    assertThat(notes.getLast()).contains("compares 1 of the tunings");
  }

  /// Returns what a search measures.
  private Set<Tuning> measured(Duration budget, Duration once, List<String> notes) {
    var simulated = problems.getFirst();
    var machine = new Distorted(simulated, 1);
    LocalRanks.run(
        1,
        world -> {
          var finalists =
              new Search(world, simulated.all(), simulated.predictions(), budget, once)
                  .finalists(machine::measure, samples(world, "budget"), notes);
          assertThat(finalists).isNotEmpty();
        });
    return Set.copyOf(machine.measured());
  }

  @Test
  void withoutPredictionsAllAreMeasured() {
    var simulated = problems.getFirst();
    LocalRanks.run(
        1,
        world -> {
          var machine = new Distorted(simulated, 1);
          var notes = new ArrayList<String>();
          var _ =
              new Search(
                      world,
                      simulated.all(),
                      new Search.Predictions("h100x8", Map.of()),
                      LONG,
                      Duration.ofNanos(1))
                  .finalists(machine::measure, samples(world, "unpredicted"), notes);
          assertThat(machine.measured()).containsExactlyInAnyOrderElementsOf(simulated.all());
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
