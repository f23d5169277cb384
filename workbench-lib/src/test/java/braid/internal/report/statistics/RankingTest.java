package braid.internal.report.statistics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class RankingTest {
  private static final int ROUNDS = 12;

  private static double[] constant(double value) {
    var values = new double[ROUNDS];
    Arrays.fill(values, value);
    return values;
  }

  private static double[] noisy(double value, double noise, Random random) {
    return random.doubles(ROUNDS).map(_ -> value * (1 + noise * random.nextGaussian())).toArray();
  }

  @Test
  void withoutNoiseEveryDifferenceCounts() {
    var ranking =
        Ranking.of(
            constant(100), constant(100), List.of(constant(90), constant(80), constant(110)));

    assertThat(ranking.noiseFloor()).isZero();
    assertThat(ranking.best()).isEqualTo(1);
    assertThat(ranking.ties()).isEmpty();
    assertThat(ranking.saved().get(1).value()).isEqualTo(0.2, within(1e-12));
    assertThat(ranking.saved().get(2).value()).isEqualTo(-0.1, within(1e-12));
  }

  @Test
  void aMoodThatARoundSharesIsNoNoise() {
    var random = new Random(3);
    var unfused = random.doubles(ROUNDS, 50, 200).toArray();
    var faster = Arrays.stream(unfused).map(t -> 0.9 * t).toArray();

    var ranking = Ranking.of(unfused, unfused, List.of(faster));

    assertThat(ranking.best()).isZero();
    assertThat(ranking.saved().getFirst().low()).isEqualTo(0.1, within(1e-12));
    assertThat(ranking.saved().getFirst().high()).isEqualTo(0.1, within(1e-12));
  }

  @Test
  void configurationsOfEqualSpeedTie() {
    long seed = 11;
    var random = new Random(seed);
    var ranking =
        Ranking.of(
            noisy(100, 0.01, random),
            noisy(100, 0.01, random),
            List.of(noisy(80, 0.01, random), noisy(80, 0.01, random), noisy(95, 0.01, random)));

    assertThat(ranking.best()).as("seed %d", seed).isIn(0, 1);
    assertThat(ranking.ties()).as("seed %d", seed).containsExactly(1 - ranking.best());
  }

  @Test
  void overlapThatIsNoFasterSeldomWins() {
    long seed = 5;
    var random = new Random(seed);
    int studies = 400;
    int wins = 0;
    for (int study = 0; study < studies; study++) {
      var ranking =
          Ranking.of(
              noisy(100, 0.02, random),
              noisy(100, 0.02, random),
              List.of(noisy(100, 0.02, random)));
      if (ranking.best() != Ranking.UNFUSED) {
        wins++;
      }
    }
    // One side of a 96% interval, and beyond the floor as well.
    assertThat(wins / (double) studies).as("seed %d", seed).isLessThan(0.03);
  }

  @Test
  void whereOverlapLosesUnfusedIsBestAndTheLosersDoNotTie() {
    var ranking = Ranking.of(constant(100), constant(101), List.of(constant(120), constant(100.4)));

    assertThat(ranking.noiseFloor()).isEqualTo(0.01, within(1e-12));
    assertThat(ranking.best()).isEqualTo(Ranking.UNFUSED);
    assertThat(ranking.ties()).containsExactly(1);
  }
}
