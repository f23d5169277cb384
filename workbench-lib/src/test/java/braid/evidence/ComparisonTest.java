package braid.evidence;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import braid.Tuner;
import braid.evidence.Comparison.Verdict;
import braid.internal.report.statistics.RoundPlan;
import braid.internal.report.statistics.Rounds;
import braid.model.BraidException;
import braid.model.HardwareReading;
import braid.model.HostLoad;
import braid.model.MimeBundle;
import braid.model.Overlap;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Random;
import java.util.SequencedMap;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ComparisonTest {
  private static final int ROUNDS = 12;
  private static final List<Integer> SPLITS = List.of(1, 2, 4, 8);

  private static SequencedMap<String, String> problem(String... more) {
    var problem = new LinkedHashMap<String, String>();
    problem.put("pattern", "all-gather-gemm");
    problem.put("m", "3840");
    problem.put("dtype", "fp32");
    problem.put("link", "1GB/s");
    for (int i = 0; i < more.length; i += 2) {
      problem.put(more[i], more[i + 1]);
    }
    return problem;
  }

  /// Returns a study whose rounds have a shared disturbance and individual times.
  private static Study<Overlap> study(
      SequencedMap<String, String> problem,
      List<Integer> splits,
      double millis,
      double noise,
      int rounds,
      Random random) {
    var columns = new ArrayList<List<Long>>();
    for (int column = 0; column < splits.size() + 2; column++) {
      columns.add(new ArrayList<>());
    }
    for (int round = 0; round < rounds; round++) {
      double mood = 1 + 0.5 * noise * random.nextGaussian();
      for (int column = 0; column < columns.size(); column++) {
        double base = column < 2 ? 100 : millis;
        double time = base * mood * (1 + noise * Math.abs(random.nextGaussian()));
        columns.get(column).add(Math.round(1e6 * time));
      }
    }
    var trials = new ArrayList<Study.Trial<Overlap>>();
    for (int i = 0; i < splits.size(); i++) {
      trials.add(new Study.Trial<>(Overlap.pipelined(splits.get(i)), columns.get(i + 2)));
    }
    return new Study<>(problem, 4, 1, columns.get(0), columns.get(1), trials, Overlap.unfused());
  }

  private static Study<Overlap> study(double millis, double noise, Random random) {
    return study(problem(), SPLITS, millis, noise, ROUNDS, random);
  }

  /// Equal times are not called changed. Counted over whole comparisons, of which one wrong row
  /// spoils all.
  @Test
  void theSameTwiceIsSeldomCalledDifferent() {
    for (double noise : new double[] {0.002, 0.03, 0.10}) {
      long seed = 7;
      var random = new Random(seed);
      int comparisons = 1000;
      int wrong = 0;
      int same = 0;
      for (int i = 0; i < comparisons; i++) {
        var comparison =
            Comparison.of(study(90, noise, random), study(90, noise, random), /* threshold= */ 0);
        boolean claims =
            comparison.verdict() == Verdict.SLOW || comparison.verdict() == Verdict.FAST;
        wrong += claims ? 1 : 0;
        same += comparison.verdict() == Verdict.SAME ? 1 : 0;
      }
      assertThat(wrong).as("of %d at noise %s, seed %d", comparisons, noise, seed).isLessThan(30);
      if (noise < Comparison.MOST_MARGIN_OF_SAME) {
        assertThat(same).as("of %d at noise %s, seed %d", comparisons, noise, seed).isPositive();
      }
    }
  }

  @Test
  void tenPercentAreFoundInThreePercentOfNoise() {
    long seed = 8;
    var random = new Random(seed);
    int comparisons = 500;
    int found = 0;
    int contrary = 0;
    for (int i = 0; i < comparisons; i++) {
      var slower = Comparison.of(study(80, 0.03, random), study(88, 0.03, random));
      var faster = Comparison.of(study(88, 0.03, random), study(80, 0.03, random));
      found += slower.verdict() == Verdict.SLOW ? 1 : 0;
      found += faster.verdict() == Verdict.FAST ? 1 : 0;
      contrary += slower.count(Verdict.FAST) + faster.count(Verdict.SLOW) > 0 ? 1 : 0;
    }
    assertThat(found).as("of %d, seed %d", 2 * comparisons, seed).isGreaterThan(980);
    assertThat(contrary).as("of %d, seed %d", 2 * comparisons, seed).isZero();
  }

  @Test
  void nothingBelowTheNoiseIsClaimed() {
    long seed = 9;
    var random = new Random(seed);
    for (int i = 0; i < 200; i++) {
      var comparison = Comparison.of(study(80, 0.05, random), study(84, 0.05, random), 0);
      for (var row : comparison.rows()) {
        if (row.verdict() == Verdict.SLOW || row.verdict() == Verdict.FAST) {
          assertThat(Math.abs(row.difference().value()))
              .as("seed %d, %s", seed, row)
              .isGreaterThan(comparison.noise());
        }
      }
    }
  }

  /// Reported case: medians of 22.04 and 21.05 ms, printed beside a median quotient of +3.27%.
  @Test
  void percentAndTimesAgree() {
    long seed = 11;
    var random = new Random(seed);
    for (int i = 0; i < 500; i++) {
      var comparison = Comparison.of(study(80, 0.2, random), study(80, 0.2, random));
      for (var row : comparison.rows()) {
        assertThat(row.difference().value())
            .as("seed %d", seed)
            .isCloseTo(row.secondNanos() / row.firstNanos() - 1, within(1e-12));
      }
    }
  }

  /// Two runs of one program, measured by the tuner's default plan.
  @ParameterizedTest
  @CsvSource({"0.005", "0.01", "0.02"})
  void twoRunsOnAQuietMachineAreTheSame(double noise) {
    int same = 0;
    int rows = 0;
    int claimed = 0;
    for (long seed = 0; seed < 100; seed++) {
      var comparison = Comparison.of(quiet(noise, 2 * seed), quiet(noise, 2 * seed + 1));
      rows += comparison.rows().size();
      same += (int) comparison.count(Verdict.SAME);
      claimed += (int) (comparison.count(Verdict.SLOW) + comparison.count(Verdict.FAST));
    }
    assertThat(same).as("of %d rows at noise %s", rows, noise).isGreaterThan(rows / 2);
    assertThat(claimed).as("of %d rows at noise %s", rows, noise).isLessThan(rows / 100);
  }

  /// Two runs of one program on a machine that drifts, and whose noise lingers over several rounds:
  /// times of neighboring rounds carry less information than the same number of independent ones.
  @ParameterizedTest
  @CsvSource({"0.01", "0.05"})
  void twoRunsOnASharedMachineAreSeldomCalledDifferent(double noise) {
    int comparisons = 200;
    int claimed = 0;
    for (long seed = 0; seed < comparisons; seed++) {
      var first = run(SimulatedMachine.shared(noise, SPLITS.size() + 2, 2 * seed), seed);
      var second = run(SimulatedMachine.shared(noise, SPLITS.size() + 2, 2 * seed + 1), ~seed);
      var verdict = Comparison.of(first, second).verdict();
      claimed += verdict == Verdict.SLOW || verdict == Verdict.FAST ? 1 : 0;
    }
    assertThat(claimed)
        .as("of %d comparisons at noise %s", comparisons, noise)
        .isLessThanOrEqualTo(comparisons / 20);
  }

  private static Study<Overlap> quiet(double noise, long seed) {
    return run(SimulatedMachine.quiet(noise, SPLITS.size() + 2, seed), seed);
  }

  private static Study<Overlap> run(SimulatedMachine machine, long seed) {
    var candidates = new ArrayList<Rounds.Candidate>();
    for (int column = 0; column < SPLITS.size() + 2; column++) {
      double quiet = column < 2 ? 10e6 : 8e6 + 2e5 * column;
      candidates.add(() -> machine.nanos(quiet));
    }
    var plan = RoundPlan.within(Tuner.DEFAULT_BUDGET, SPLITS.size(), Tuner.DEFAULT_REPEATS, 1_000);
    var rounds = new Rounds(candidates, seed);
    for (int more = plan.first(); more > 0; ) {
      rounds.measure(more, _ -> {});
      more = plan.more(rounds.nanos(), machine.elapsedNanos());
    }
    var nanos =
        Arrays.stream(rounds.nanos()).map(row -> Arrays.stream(row).boxed().toList()).toList();
    var trials = new ArrayList<Study.Trial<Overlap>>();
    for (int i = 0; i < SPLITS.size(); i++) {
      trials.add(new Study.Trial<>(Overlap.pipelined(SPLITS.get(i)), nanos.get(i + 2)));
    }
    return new Study<>(problem(), 4, seed, nanos.get(0), nanos.get(1), trials, Overlap.unfused());
  }

  /// The recommended number of rounds is measured, and then most rows are decided.
  @Test
  void theRoundsThatItTakesDoIt() {
    long seed = 12;
    var random = new Random(seed);
    int before = 0;
    int after = 0;
    for (int i = 0; i < 100; i++) {
      var comparison = Comparison.of(study(80, 0.03, random), study(80, 0.03, random));
      var more = comparison.rows().stream().flatMapToInt(row -> row.moreRounds().stream()).max();
      if (more.isEmpty()) {
        continue;
      }
      assertThat(comparison.headline())
          .contains("; about %d more rounds in each run would".formatted(more.getAsInt()));
      before += (int) comparison.count(Verdict.UNDECIDED);
      int rounds = Math.min(2_000, ROUNDS + more.getAsInt());
      after +=
          (int)
              Comparison.of(
                      study(problem(), SPLITS, 80, 0.03, rounds, random),
                      study(problem(), SPLITS, 80, 0.03, rounds, random))
                  .count(Verdict.UNDECIDED);
    }
    assertThat(before).as("seed %d", seed).isPositive();
    assertThat(after).as("of %d, seed %d", before, seed).isLessThan(before / 4);
  }

  @Test
  void aDifferenceWithinTheThresholdIsTheSame() {
    var random = new Random(4);
    var first = study(80, 0.0005, random);
    var second = study(81, 0.0005, random);
    assertThat(Comparison.of(first, second, 0.03).verdict()).isEqualTo(Verdict.SAME);
    var strict = Comparison.of(first, second, 0.005);
    assertThat(strict.verdict()).isEqualTo(Verdict.SLOW);
    assertThat(strict.rows().getFirst().verdict()).isEqualTo(Verdict.SAME);
    assertThat(strict.headline())
        .matches("SLOW: of 5 configurations 4 slower \\(\\d splits? by .*")
        .contains("1 the same (margin ±0.5%)")
        .doesNotContain("reference");
  }

  @Test
  void nothingIsTheSameIfAllIsNoise() {
    long seed = 10;
    var random = new Random(seed);
    for (int i = 0; i < 100; i++) {
      var comparison = Comparison.of(study(80, 0.5, random), study(80, 0.5, random));
      assertThat(comparison.count(Verdict.SAME)).as("seed %d", seed).isZero();
      assertThat(comparison.headline()).contains("the noise: too much to call anything the same");
    }
  }

  @Test
  void aReferenceThatChangedTooIsSaid() {
    var random = new Random(4);
    var slowMachine = new ArrayList<Study.Trial<Overlap>>();
    var first = study(80, 0.0005, random);
    for (var trial : first.trials()) {
      slowMachine.add(new Study.Trial<>(trial.configuration(), scaled(trial.nanos())));
    }
    var second =
        new Study<>(
            first.problem(),
            4,
            2,
            scaled(first.unfusedFirst()),
            scaled(first.unfusedAgain()),
            slowMachine,
            Overlap.unfused());
    var comparison = Comparison.of(first, second);
    assertThat(comparison.referenceMoved()).isTrue();
    assertThat(comparison.rows().getFirst().verdict()).isEqualTo(Verdict.MACHINE_DIFFERED);
    assertThat(comparison.headline())
        .isEqualTo(
            "SAME: the reference itself took 10.0% longer, so each is judged beside its own run's"
                + " reference: of 4 configurations 4 the same (margin ±3.0%)");
    assertThat(Comparison.ofTimes(first, second, 0.03).headline())
        .startsWith("SLOW: of 5 configurations 5 slower (")
        .endsWith("; the unfused reference changed too, so it is not the overlap alone");
  }

  /// Reported case: the same code, `unfused SLOW +59.6%`, where only the load had changed.
  @Test
  void aReferenceThatMovedHidesWhatMovedUnequally() {
    var random = new Random(4);
    var first = study(80, 0.0005, random);
    var busier = new ArrayList<Study.Trial<Overlap>>();
    for (var trial : first.trials()) {
      double factor = 1.596 * (1 + 0.1 * busier.size());
      busier.add(
          new Study.Trial<>(
              trial.configuration(),
              trial.nanos().stream().map(n -> Math.round(factor * n)).toList()));
    }
    var second =
        new Study<>(
            first.problem(),
            4,
            2,
            first.unfusedFirst().stream().map(n -> Math.round(1.596 * n)).toList(),
            first.unfusedAgain().stream().map(n -> Math.round(1.596 * n)).toList(),
            busier,
            Overlap.unfused());
    var comparison = Comparison.of(first, second);
    assertThat(comparison.rows().stream().map(Comparison.Row::verdict))
        .containsExactly(
            Verdict.MACHINE_DIFFERED,
            Verdict.SAME,
            Verdict.MACHINE_DIFFERED,
            Verdict.MACHINE_DIFFERED,
            Verdict.MACHINE_DIFFERED);
    assertThat(comparison.verdict()).isEqualTo(Verdict.MACHINE_DIFFERED);
    assertThat(comparison.headline())
        .contains("took 59.6% longer", "1 the same, 3 cannot be judged")
        .doesNotContain("SLOW", "FAST");
    assertThat(comparison.rows().get(4).beside().orElseThrow().value())
        .isCloseTo(0.3, within(1e-6));
  }

  /// Lower clocks and a hotter GPU are printed, and small differences are not.
  @Test
  void notableDifferencesOfTheHardwareAreNamed() {
    var cool = new HardwareReading(1980, 400, 45, Set.of());
    var warm = new HardwareReading(1950, 400, 55, Set.of());
    var hot = new HardwareReading(1755, 400, 71, Set.of("power cap"));
    assertThat(Comparison.of(read(cool), read(warm)).differing()).isEmpty();
    assertThat(Comparison.of(read(cool), read(hot)).differing())
        .containsExactly(
            "SM clock: 1980 MHz and 1755 MHz",
            "temperature: 45 °C and 71 °C",
            "clocks reduced by: nothing and power cap (72 of 72)");
  }

  @Test
  void otherProcessesOfEitherStudyAreNamed() {
    var quiet = loaded(Optional.of(new HostLoad(0.12, 2, 4)));
    var busy = loaded(Optional.of(new HostLoad(1.82, 2, 15.2)));
    assertThat(Comparison.of(quiet, quiet).differing()).isEmpty();
    assertThat(Comparison.of(quiet, busy).differing())
        .containsExactly("kept busy by other processes: 0.1 of 2 cores and 1.8 of 2 cores");
    assertThat(Comparison.of(busy, loaded(Optional.empty())).differing())
        .containsExactly("kept busy by other processes: 1.8 of 2 cores and unknown");
    assertThat(Comparison.pooled(List.of(quiet, busy, quiet)).load()).isEqualTo(busy.load());
  }

  private static Study<Overlap> read(HardwareReading reading) {
    return measured(reading, Optional.empty());
  }

  private static Study<Overlap> loaded(Optional<HostLoad> load) {
    return measured(HardwareReading.NONE, load);
  }

  private static Study<Overlap> measured(HardwareReading reading, Optional<HostLoad> load) {
    var study = study(80, 0.001, new Random(4));
    return new Study<>(
        study.problem(),
        4,
        1,
        study.unfusedFirst(),
        study.unfusedAgain(),
        study.trials().stream()
            .map(
                trial ->
                    new Study.Trial<>(
                        trial.configuration(), trial.nanos(), Collections.nCopies(ROUNDS, reading)))
            .toList(),
        Collections.nCopies(2 * ROUNDS, reading),
        Overlap.unfused(),
        Optional.empty(),
        0,
        List.of(),
        List.of(),
        load);
  }

  private static List<Long> scaled(List<Long> nanos) {
    return nanos.stream().map(n -> n * 11 / 10).toList();
  }

  @Test
  void onlySharedConfigurationsAreCompared() {
    var random = new Random(4);
    var first = study(problem(), List.of(1, 2, 4), 80, 0.001, ROUNDS, random);
    var second = study(problem("link", "2GB/s"), List.of(2, 4, 8), 80, 0.001, 30, random);
    var comparison = Comparison.of(first, second);
    assertThat(comparison.rows().stream().map(Comparison.Row::configuration))
        .containsExactly("unfused", "2 splits", "4 splits");
    assertThat(comparison.unmatched())
        .containsExactly("1 split only in the first", "8 splits only in the second");
    assertThat(comparison.differing()).containsExactly("link: 1GB/s and 2GB/s");
    assertThat(comparison.toString())
        .contains("not measured alike: link: 1GB/s and 2GB/s", "not compared: 1 split only in")
        .contains("SAME");
    assertThat(comparison.display().data().get(MimeBundle.HTML)).contains("<td", "4 splits");
  }

  @Test
  void unlikeProblemsAreRefused() {
    var random = new Random(4);
    var first = study(problem(), SPLITS, 80, 0.001, ROUNDS, random);
    var second = study(problem("m", "8192", "dtype", "bf16"), SPLITS, 80, 0.001, ROUNDS, random);
    assertThat(Comparison.alike(first, second)).isFalse();
    assertThatThrownBy(() -> Comparison.of(first, second))
        .isInstanceOf(BraidException.class)
        .hasMessage(
            "two studies must be of one problem to be compared but differ in m: 3840 and 8192,"
                + " dtype: fp32 and bf16; compare runs with the same sizes");
    var other = study(problem(), List.of(16), 80, 0.001, ROUNDS, random);
    assertThatThrownBy(() -> Comparison.of(first, other))
        .hasMessageContaining("must share a configuration but the first has 1 split, 2 splits,");
    assertThatThrownBy(() -> Comparison.of(first, first, 3))
        .hasMessage("a threshold must be a share, 0 to less than 1, but was 3.0; try 0.03");
  }

  @Test
  void tooFewRoundsDecideNothing() {
    var random = new Random(4);
    var first = study(problem(), SPLITS, 80, 0.0001, 3, random);
    var second = study(problem(), SPLITS, 160, 0.0001, 3, random);
    assertThat(Comparison.of(first, second).rows())
        .allMatch(row -> row.verdict() == Verdict.UNDECIDED)
        // 5 rows share 5%, and 2 / C(2n, n) is at most 1% from 5 rounds on
        .allMatch(row -> row.moreRounds().equals(OptionalInt.of(2)));
  }
}
