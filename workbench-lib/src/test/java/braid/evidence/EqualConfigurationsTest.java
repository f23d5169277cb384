package braid.evidence;

import static org.assertj.core.api.Assertions.assertThat;

import braid.Tuner;
import braid.internal.report.statistics.RoundPlan;
import braid.internal.report.statistics.Rounds;
import braid.internal.selftest.Sweep;
import braid.model.Overlap;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Both error rates of a verdict, counted over whole studies of simulated machines: no equal
/// configuration is called better in more than 5% of studies, however many configurations there
/// are, and a real difference is found in 95%.
///
/// Studies are measured like the tuner's: [Rounds] in shuffled order, their number decided by
/// [RoundPlan]. `TwinStudies` counts the same on real ranks.
class EqualConfigurationsTest {
  private static final int STUDIES = Sweep.times(100, 400);
  private static final double UNFUSED_NANOS = 10e6;
  private static final int MOST_ROUNDS = 200;

  /// @param quietNanos undisturbed time of each configuration; splits number them
  private static Study<Overlap> study(
      List<Double> quietNanos, double noise, RoundPlan plan, long seed) {
    var machine = SimulatedMachine.shared(noise, quietNanos.size() + 2, seed);
    var candidates = new ArrayList<Rounds.Candidate>();
    candidates.add(() -> machine.nanos(UNFUSED_NANOS));
    candidates.add(() -> machine.nanos(UNFUSED_NANOS));
    quietNanos.forEach(quiet -> candidates.add(() -> machine.nanos(quiet)));
    var rounds = new Rounds(candidates, seed);
    for (int more = plan.first(); more > 0; ) {
      rounds.measure(more, _ -> {});
      more = plan.more(rounds.nanos(), machine.elapsedNanos());
    }
    var nanos =
        Arrays.stream(rounds.nanos()).map(row -> Arrays.stream(row).boxed().toList()).toList();
    var trials = new ArrayList<Study.Trial<Overlap>>();
    for (int i = 0; i < quietNanos.size(); i++) {
      trials.add(new Study.Trial<>(Overlap.pipelined(i + 1), nanos.get(i + 2)));
    }
    return new Study<>(
        new LinkedHashMap<>(), 4, seed, nanos.get(0), nanos.get(1), trials, Overlap.unfused());
  }

  private static RoundPlan plan(int exactly, int configurations) {
    return exactly > 0
        ? RoundPlan.exactly(exactly)
        : RoundPlan.within(
            Tuner.DEFAULT_BUDGET, configurations, Tuner.DEFAULT_REPEATS, MOST_ROUNDS);
  }

  private static List<Double> equal(int configurations, double nanos) {
    var all = new ArrayList<Double>();
    for (int i = 0; i < configurations; i++) {
      all.add(nanos);
    }
    return all;
  }

  /// Returns the number of configurations that are not called slower than the best.
  private static int notSlower(Study<Overlap> study) {
    return study.ties().size() + study.undecided().size();
  }

  /// @param rounds exact number of rounds, or 0 for the tuner's default plan
  @ParameterizedTest
  @CsvSource({
    "2, 0.01, 0", "2, 0.01, 12", "2, 0.05, 0", "2, 0.05, 60",
    "5, 0.01, 0", "5, 0.01, 12", "5, 0.05, 0", "5, 0.05, 60",
    "20, 0.01, 0", "20, 0.01, 16", "20, 0.05, 60",
  })
  void noneOfEqualConfigurationsIsCalledBetter(int configurations, double noise, int rounds) {
    var plan = plan(rounds, configurations);
    int preferred = 0;
    int beatingTwins = 0;
    for (long seed = 0; seed < STUDIES; seed++) {
      // All are as fast as unfused: no configuration may be called better.
      var asUnfused = study(equal(configurations, UNFUSED_NANOS), noise, plan, seed);
      if (!asUnfused.best().equals(Overlap.unfused()) || notSlower(asUnfused) < configurations) {
        preferred++;
      }
      // All beat unfused equally: they may be called better than unfused, but not than each other.
      var faster = study(equal(configurations, 0.8 * UNFUSED_NANOS), noise, plan, ~seed);
      boolean hasBest = !faster.best().equals(Overlap.unfused());
      if (hasBest && notSlower(faster) < configurations - 1) {
        beatingTwins++;
      }
    }
    var description = "of %d studies of %d configurations".formatted(STUDIES, configurations);
    assertThat(preferred).as(description + " as fast as unfused").isLessThanOrEqualTo(STUDIES / 20);
    assertThat(beatingTwins)
        .as(description + " that beat unfused")
        .isLessThanOrEqualTo(STUDIES / 20);
  }

  @ParameterizedTest
  @CsvSource({"2", "5", "20"})
  void fivePercentAreFoundInOnePercentOfNoise(int configurations) {
    var plan = plan(0, configurations);
    int found = 0;
    for (long seed = 0; seed < STUDIES; seed++) {
      var nanos = equal(configurations, UNFUSED_NANOS);
      nanos.set(1, 0.95 * UNFUSED_NANOS);
      var study = study(nanos, 0.01, plan, seed);
      found += study.best().equals(Overlap.pipelined(2)) ? 1 : 0;
    }
    assertThat(found)
        .as("of %d studies of %d configurations", STUDIES, configurations)
        .isGreaterThanOrEqualTo(STUDIES * 95 / 100);
  }
}
