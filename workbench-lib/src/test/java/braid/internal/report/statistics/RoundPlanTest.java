package braid.internal.report.statistics;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.Arrays;
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
  void thereAreNeverMoreRoundsThanTheMost() {
    assertThat(PLAN.more(nanos(998, 0.5), 1)).isEqualTo(2);
    assertThat(PLAN.more(nanos(1_000, 0.5), 1)).isZero();
  }

  @Test
  void manyConfigurationsBeginWithTheRoundsThatAWinnerNeeds() {
    var many = RoundPlan.within(Duration.ZERO, 20, 12, 1_000);
    assertThat(many.first()).isEqualTo(16);
    assertThat(many.more(nanos(16, 0.5), 0)).isZero();
  }

  @Test
  void whichOneLeadsDoesNotMatter() {
    var noisy = nanos(12, 0.02);
    var swapped = new long[][] {noisy[0], noisy[1], noisy[3], noisy[2]};
    assertThat(PLAN.more(noisy, SECOND)).isPositive().isEqualTo(PLAN.more(swapped, SECOND));
    var doubled = Arrays.stream(noisy).map(long[]::clone).toArray(long[][]::new);
    doubled[3] = Arrays.stream(doubled[3]).map(t -> 2 * t).toArray();
    assertThat(PLAN.more(doubled, SECOND)).isPositive();
  }
}
