package braid.internal.report.statistics;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class RoundPlanTest {
  private static final long SECOND = 1_000_000_000L;
  private static final RoundPlan PLAN = RoundPlan.within(Duration.ofSeconds(20), 2, 12, 1_000);

  /// Returns times that alternate around 10 ms, by that share to either side.
  private static long[][] nanos(int rounds, double spread) {
    var nanos = new long[4][rounds];
    for (int row = 0; row < nanos.length; row++) {
      for (int round = 0; round < rounds; round++) {
        double side = (round + row) % 2 == 0 ? 1 + spread : 1 - spread;
        nanos[row][round] = Math.round(10e6 * side);
      }
    }
    return nanos;
  }

  @Test
  void anExactNumberIsObeyedHoweverNoisyItIs() {
    var plan = RoundPlan.exactly(6);
    assertThat(plan.first()).isEqualTo(6);
    assertThat(plan.more(nanos(6, 0.5), 1)).isZero();
  }

  @Test
  void preciseTimesNeedNoMoreRounds() {
    assertThat(PLAN.first()).isEqualTo(12);
    assertThat(PLAN.more(nanos(12, 0.001), SECOND)).isZero();
  }

  @Test
  void noisyTimesAreMeasuredUntilTheBudgetIsSpent() {
    int rounds = PLAN.first();
    long elapsed = rounds * SECOND / 4;
    while (true) {
      int more = PLAN.more(nanos(rounds, 0.5), elapsed);
      if (more == 0) {
        break;
      }
      rounds += more;
      elapsed += more * SECOND / 4;
    }
    // A quarter of a second each: 80 rounds are 20 s.
    assertThat(rounds).isEqualTo(80);
  }

  @Test
  void noRoundBeginsThatWouldEndAfterTheBudget() {
    assertThat(PLAN.more(nanos(12, 0.5), 19 * SECOND)).isZero();
    assertThat(PLAN.more(nanos(12, 0.5), 18 * SECOND)).isEqualTo(1);
    assertThat(PLAN.more(nanos(12, 0.5), 25 * SECOND)).isZero();
  }

  @Test
  void aPlanHasNeverMoreRoundsThanItsMost() {
    assertThat(PLAN.more(nanos(998, 0.5), 1)).isEqualTo(2);
    assertThat(PLAN.more(nanos(1_000, 0.5), 1)).isZero();
  }

  @Test
  void manyConfigurationsBeginWithTheRoundsThatAWinnerNeeds() {
    var many = RoundPlan.within(Duration.ZERO, 20, 12, 1_000);
    assertThat(many.first()).isEqualTo(16);
    assertThat(many.more(nanos(16, 0.5), 0)).isZero();
  }

  /// Measures by the plan, with normal noise and 10 ms a measurement.
  ///
  /// @param slower share by which the second configuration takes longer
  private static Ranking measured(RoundPlan plan, double noise, double slower, long seed) {
    var random = new Random(seed);
    var rows = new double[][] {{}, {}, {}, {}};
    for (int more = plan.first(); more > 0; ) {
      for (int row = 0; row < rows.length; row++) {
        int before = rows[row].length;
        rows[row] = Arrays.copyOf(rows[row], before + more);
        for (int round = before; round < rows[row].length; round++) {
          double quiet = row == 3 ? 10e6 * (1 + slower) : 10e6;
          rows[row][round] = quiet * Math.exp(noise * random.nextGaussian());
        }
      }
      var nanos =
          Arrays.stream(rows)
              .map(row -> Arrays.stream(row).mapToLong(Math::round).toArray())
              .toArray(long[][]::new);
      more = plan.more(nanos, 40_000_000L * rows[0].length);
    }
    assertThat(40_000_000L * rows[0].length)
        .isLessThanOrEqualTo(
            Math.max(plan.budget().toNanos(), plan.untilDecided().toNanos()) + SECOND);
    return Ranking.of(rows[0], rows[1], List.of(rows[2], rows[3]));
  }

  @Test
  void aPlanContinuesUntilTheRankingIsDecided() {
    var brief = RoundPlan.within(Duration.ZERO, 2, 12, 10_000);
    var plan = brief.untilDecided(Duration.ofMinutes(1));
    int before = 0;
    int after = 0;
    for (long seed = 0; seed < 40; seed++) {
      before += measured(brief, 0.1, -0.08, seed).best() == 1 ? 1 : 0;
      after += measured(plan, 0.1, -0.08, seed).best() == 1 ? 1 : 0;
    }
    assertThat(before).as("of 40 without it").isLessThan(12);
    assertThat(after).as("of 40").isGreaterThanOrEqualTo(38);
    assertThat(brief.more(nanos(12, 0.5), SECOND)).isZero();
    assertThat(plan.more(nanos(12, 0.5), SECOND)).isEqualTo(12);
    assertThat(plan.more(nanos(12, 0.5), 59 * SECOND)).isZero();
  }

  /// Looking again and again for a decision finds one by chance; few looks do so seldom.
  @Test
  void equalConfigurationsAreSeldomPreferredHoweverOftenThePlanLooks() {
    var plan = RoundPlan.within(Duration.ZERO, 2, 12, 10_000).untilDecided(Duration.ofSeconds(40));
    int preferred = 0;
    int studies = 100;
    for (long seed = 0; seed < studies; seed++) {
      preferred += measured(plan, 0.05, 0, seed).best() == Ranking.UNFUSED ? 0 : 1;
    }
    assertThat(preferred).as("of %d", studies).isLessThanOrEqualTo(studies / 20);
  }

  @Test
  void theLeaderDoesNotMatter() {
    var noisy = nanos(12, 0.02);
    var swapped = new long[][] {noisy[0], noisy[1], noisy[3], noisy[2]};
    assertThat(PLAN.more(noisy, SECOND)).isPositive().isEqualTo(PLAN.more(swapped, SECOND));
    var doubled = Arrays.stream(noisy).map(long[]::clone).toArray(long[][]::new);
    doubled[3] = Arrays.stream(doubled[3]).map(t -> 2 * t).toArray();
    assertThat(PLAN.more(doubled, SECOND)).isPositive();
  }

  @Test
  void roundsThatTakeMinutesAreFewer() {
    var plan = RoundPlan.within(Duration.ofSeconds(20), 2, 12, 1000);
    assertThat(plan.firstAfforded(1_000_000_000L, 1)).isEqualTo(12);
    assertThat(plan.firstAfforded(10_000_000_000L, 1)).isEqualTo(12);
    assertThat(plan.firstAfforded(24_000_000_000L, 1)).isEqualTo(5);
    assertThat(plan.firstAfforded(300_000_000_000L, 1)).isEqualTo(3);
    assertThat(plan.firstAfforded(10_000_000_000L, 3)).isEqualTo(4);
    var longer = RoundPlan.within(Duration.ofMinutes(10), 2, 12, 1000);
    assertThat(longer.firstAfforded(100_000_000_000L, 1)).isEqualTo(12);
    assertThat(RoundPlan.exactly(8).firstAfforded(300_000_000_000L, 1)).isEqualTo(8);
  }
}
