package braid.evidence;

import static org.assertj.core.api.Assertions.assertThat;

import braid.evidence.Comparison.Verdict;
import braid.internal.report.statistics.RoundPlan;
import braid.internal.report.statistics.Rounds;
import braid.model.Overlap;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Two simulated runs, one of them on a machine that other processes load.
class BusyMachineTest {
  private static final int PAIRS = 80;
  private static final double SLICE_MILLIS = 3;
  private static final double BURST_MILLIS = 150;
  private static final Duration BUDGET = Duration.ofSeconds(2);

  /// Computation and communication of a configuration, and the share of the smaller one that the
  /// other hides.
  private record Work(double computeMillis, double linkMillis, double hidden) {
    Work times(double factor) {
      return new Work(factor * computeMillis, factor * linkMillis, hidden);
    }
  }

  enum Load {
    NONE,
    /// All the time, up to three runnable processes for two cores.
    STEADY,
    /// Hardly noticeable.
    LIGHT,
    /// On and off, for 0.15 s on average.
    BURSTS;

    double drawn(Random random) {
      return switch (this) {
        case NONE -> 0;
        case STEADY -> 0.5 + random.nextDouble();
        case LIGHT -> 0.3 * random.nextDouble() * random.nextDouble();
        case BURSTS -> random.nextDouble();
      };
    }
  }

  /// A machine whose cores other processes take for whole time slices. Computation on the slowest
  /// of two ranks is delayed; a copy only where a rank must wake to start it.
  private static final class Machine {
    private final Random random;
    private final double load;
    private final boolean bursts;
    private final double noise;
    private final double waking;
    private double nowMillis;
    private double switchMillis;
    private boolean loaded = true;

    Machine(Load kind, double noise, Random random) {
      this.random = random;
      this.noise = noise;
      load = kind.drawn(random);
      bursts = kind == Load.BURSTS;
      waking = random.nextDouble();
    }

    private double delay(double millis) {
      double delay = 0;
      double begin = -Math.log(1 - random.nextDouble()) * SLICE_MILLIS / load;
      while (loaded && load > 0 && begin < millis) {
        delay += SLICE_MILLIS * (0.5 + random.nextDouble());
        begin -= Math.log(1 - random.nextDouble()) * SLICE_MILLIS / load;
      }
      return delay;
    }

    double millis(Work work) {
      double compute =
          work.computeMillis + Math.max(delay(work.computeMillis), delay(work.computeMillis));
      double link = work.linkMillis + waking * delay(1);
      double millis =
          (compute + link - work.hidden * Math.min(compute, link))
              * Math.exp(noise * Math.abs(random.nextGaussian()));
      nowMillis += millis;
      while (bursts && nowMillis > switchMillis) {
        loaded = !loaded;
        switchMillis -= Math.log(1 - random.nextDouble()) * BURST_MILLIS;
      }
      return millis;
    }

    long elapsedNanos() {
      return Math.round(1e6 * nowMillis);
    }
  }

  /// Returns the reference, then three configurations that hide some of their communication.
  private static List<Work> works(Random random) {
    double compute = 0.5 * Math.pow(16, random.nextDouble());
    double link = 0.5 * Math.pow(16, random.nextDouble());
    var works = new ArrayList<Work>();
    works.add(new Work(compute, link, 0));
    for (int i = 0; i < 3; i++) {
      double overhead = 1 + 0.1 * random.nextDouble();
      works.add(new Work(compute * overhead, link, 0.3 + 0.7 * random.nextDouble()));
    }
    return works;
  }

  /// Measures by the tuner's plan.
  private static Study<Overlap> study(Machine machine, List<Work> works, long seed) {
    var candidates = new ArrayList<Rounds.Candidate>();
    for (int column = 0; column <= works.size(); column++) {
      var work = works.get(Math.max(0, column - 1));
      candidates.add(() -> Math.round(1e6 * machine.millis(work)));
    }
    var plan = RoundPlan.within(BUDGET, works.size() - 1, 12, 1_000);
    var rounds = new Rounds(candidates, seed);
    for (int more = plan.first(); more > 0; ) {
      rounds.measure(more, _ -> {});
      more = plan.more(rounds.nanos(), machine.elapsedNanos());
    }
    var nanos =
        Arrays.stream(rounds.nanos()).map(row -> Arrays.stream(row).boxed().toList()).toList();
    var trials = new ArrayList<Study.Trial<Overlap>>();
    for (int column = 2; column < nanos.size(); column++) {
      trials.add(new Study.Trial<>(Overlap.pipelined(1 << column), nanos.get(column)));
    }
    return new Study<>(
        new LinkedHashMap<>(Map.of("m", "64")),
        2,
        seed,
        nanos.get(0),
        nanos.get(1),
        trials,
        Overlap.unfused());
  }

  private static boolean claims(Comparison comparison) {
    return comparison.count(Verdict.SLOW) + comparison.count(Verdict.FAST) > 0;
  }

  @ParameterizedTest
  @EnumSource(Load.class)
  void aBusyMachineIsNoRegression(Load load) {
    var random = new Random(5);
    int claimed = 0;
    int byTimes = 0;
    int machine = 0;
    for (int pair = 0; pair < PAIRS; pair++) {
      var works = works(random);
      double noise = 0.005 + 0.02 * random.nextDouble();
      var busy = study(new Machine(load, noise, random), works, pair);
      var quiet = study(new Machine(Load.NONE, noise, random), works, ~pair);
      boolean later = random.nextBoolean();
      var first = later ? quiet : busy;
      var second = later ? busy : quiet;
      var comparison = Comparison.of(first, second);
      claimed += claims(comparison) ? 1 : 0;
      machine += comparison.verdict() == Verdict.MACHINE_DIFFERED ? 1 : 0;
      if (load == Load.STEADY) {
        byTimes += claims(Comparison.ofTimes(first, second, 0.03)) ? 1 : 0;
      }
    }
    assertThat(claimed).as("of %d pairs, seed 5", PAIRS).isZero();
    if (load == Load.STEADY) {
      assertThat(byTimes).as("by times alone, of %d pairs", PAIRS).isGreaterThan(PAIRS / 2);
      assertThat(machine).as("MACHINE_DIFFERED, of %d pairs", PAIRS).isGreaterThan(PAIRS / 2);
    }
  }

  @Test
  void fivePercentMoreWorkIsSlowerOnAQuietMachine() {
    var random = new Random(6);
    int pairs = 100;
    int found = 0;
    for (int pair = 0; pair < pairs; pair++) {
      var works = works(random);
      var slower = new ArrayList<>(works);
      slower.set(2, works.get(2).times(1.05));
      var before = study(new Machine(Load.NONE, 0.01, random), works, pair);
      var after = study(new Machine(Load.NONE, 0.01, random), slower, ~pair);
      var comparison = Comparison.of(before, after);
      found += comparison.rows().get(2).verdict() == Verdict.SLOW ? 1 : 0;
      assertThat(comparison.count(Verdict.SLOW)).as("pair %d, seed 6", pair).isLessThanOrEqualTo(1);
    }
    assertThat(found).as("of %d pairs, seed 6", pairs).isGreaterThanOrEqualTo(95);
  }

  /// Returns studies of so many starts, pooled. Each start makes each configuration up to 3% slower
  /// or faster.
  private static Study<?> starts(int starts, List<Work> works, Random random) {
    var studies = new ArrayList<Study<?>>();
    for (int start = 0; start < starts; start++) {
      var differing =
          works.stream().map(work -> work.times(1 + 0.03 * (2 * random.nextDouble() - 1))).toList();
      studies.add(study(new Machine(Load.NONE, 0.01, random), differing, random.nextLong()));
    }
    return Comparison.pooled(studies);
  }

  @Test
  void fivePercentAreFoundInSeveralStarts() {
    var random = new Random(8);
    int pairs = 60;
    int found = 0;
    int claimed = 0;
    int ofOneStart = 0;
    for (int pair = 0; pair < pairs; pair++) {
      var works = works(random);
      var slower = new ArrayList<>(works);
      slower.set(2, works.get(2).times(1.05));
      var before = starts(24, works, random);
      var after = Comparison.of(before, starts(24, slower, random));
      found += after.rows().get(2).verdict() == Verdict.SLOW ? 1 : 0;
      claimed += claims(Comparison.of(before, starts(24, works, random))) ? 1 : 0;
      var one = Comparison.of(starts(1, works, random), starts(1, slower, random));
      ofOneStart += one.rows().get(2).verdict() == Verdict.SLOW ? 1 : 0;
      assertThat(after.headline()).contains("24 starts each, margin");
    }
    assertThat(found).as("of %d pairs, seed 8", pairs).isGreaterThanOrEqualTo(57);
    assertThat(claimed).as("same code, of %d pairs, seed 8", pairs).isLessThanOrEqualTo(3);
    assertThat(ofOneStart).as("of one start, of %d pairs, seed 8", pairs).isLessThan(45);
  }

  /// The reference moves by a tenth, all configurations with it, and one by half more.
  @Test
  void aLargeRegressionIsFoundThoughTheMachineDiffers() {
    var random = new Random(7);
    var works = works(random);
    var slower = new ArrayList<>(works.stream().map(work -> work.times(1.1)).toList());
    slower.set(3, works.get(3).times(1.1 * 1.5));
    var comparison =
        Comparison.of(
            study(new Machine(Load.NONE, 0.01, random), works, 1),
            study(new Machine(Load.NONE, 0.01, random), slower, 2));
    assertThat(comparison.rows().stream().map(Comparison.Row::verdict))
        .containsExactly(Verdict.MACHINE_DIFFERED, Verdict.SAME, Verdict.SAME, Verdict.SLOW);
    assertThat(comparison.verdict()).isEqualTo(Verdict.SLOW);
    assertThat(comparison.headline())
        .matches(
            "SLOW: the reference itself took \\d+\\.\\d% longer, so each is judged beside its own"
                + " run's reference: of 3 configurations 1 slower \\(16 splits by \\d+\\.\\d%\\), 2"
                + " the same \\(margin ±3\\.0%\\)");
    assertThat(comparison.table().columnNames()).contains("÷ reference %");
  }
}
