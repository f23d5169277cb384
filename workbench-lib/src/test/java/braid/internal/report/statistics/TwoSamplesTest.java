package braid.internal.report.statistics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class TwoSamplesTest {
  /// Returns times with a long right tail, like real ones.
  private static double[] times(int count, double median, double noise, Random random) {
    return random.doubles(count).map(_ -> median * Math.exp(skewed(noise, random))).toArray();
  }

  private static double skewed(double noise, Random random) {
    double deviation = noise * random.nextGaussian();
    return deviation > 0 ? 1.5 * deviation : deviation;
  }

  @Test
  void aFactorIsFoundExactlyWhereThereIsNoNoise() {
    var base = new double[] {100, 100, 100, 100, 100, 100};
    var excess = TwoSamples.excess(base, new double[] {110, 110, 110, 110, 110, 110}, 0.95);
    assertThat(excess.value()).isEqualTo(0.1, within(1e-12));
    assertThat(excess.low()).isEqualTo(0.1, within(1e-12));
    assertThat(excess.high()).isEqualTo(0.1, within(1e-12));
  }

  /// Critical values from tables of the rank-sum test: for 6 against 6 at 95% five pairs may be in
  /// the wrong order, so the sixth difference from each end bounds the interval.
  @Test
  void intervalIsTheRankSumTests() {
    var base = IntStream.rangeClosed(1, 6).mapToDouble(_ -> 1).toArray();
    var distinct = new double[] {1, 2, 3, 4, 5, 6};
    var excess = TwoSamples.excess(base, distinct, 0.95);
    // Each difference occurs six times: the sixth from each end is the outermost value.
    assertThat(excess.low()).isZero();
    assertThat(excess.high()).isEqualTo(5);
    // Ranks 6 of 36, so P(U <= 5) = 19/924 on each side.
    assertThat(excess.confidence()).isEqualTo(1 - 2 * 19 / 924.0, within(1e-12));
  }

  @Test
  void tooFewTimesSayHowSureTheyAre() {
    var excess = TwoSamples.excess(new double[] {1, 2}, new double[] {2, 3}, 0.95);
    assertThat(excess.confidence()).isEqualTo(1 - 2 / 6.0, within(1e-12));
    assertThat(excess.low()).isZero();
    assertThat(excess.high()).isEqualTo(2);
  }

  @Test
  void intervalsCoverTheTrueFactorAsOftenAsTheirConfidence() {
    for (int rounds : new int[] {6, 12, 30}) {
      long seed = 17L + rounds;
      var random = new Random(seed);
      int draws = 4000;
      int missed = 0;
      for (int draw = 0; draw < draws; draw++) {
        var excess =
            TwoSamples.excess(
                times(rounds, 100, 0.03, random), times(rounds, 120, 0.03, random), 0.95);
        if (excess.low() > 0.2 || excess.high() < 0.2) {
          missed++;
        }
      }
      assertThat(missed / (double) draws).as("%d rounds, seed %d", rounds, seed).isLessThan(0.057);
    }
  }

  @Test
  void oneOutlierMovesLittle() {
    var base = new double[] {100, 101, 99, 100, 102, 98, 100, 101, 99, 100, 101, 99};
    var hiccup = base.clone();
    hiccup[3] = 100_000;
    assertThat(TwoSamples.excess(base, hiccup, 0.95).value()).isEqualTo(0, within(0.006));
  }

  @Test
  void longSamplesAreCondensedToMediansOfNeighbours() {
    var values =
        IntStream.range(0, 10 * TwoSamples.MOST).mapToDouble(i -> Math.floor(i / 10.0)).toArray();
    assertThat(TwoSamples.condensed(values))
        .containsExactly(IntStream.range(0, TwoSamples.MOST).asDoubleStream().toArray());
    var excess = TwoSamples.excess(values.clone(), values, 0.95);
    assertThat(excess.low()).isNegative();
    assertThat(excess.high()).isPositive();
  }

  @Test
  void valuesThatDependOnTheirNeighboursCountAsFewer() {
    long seed = 3;
    var random = new Random(seed);
    var alone = random.doubles(200).toArray();
    assertThat(TwoSamples.independent(alone)).as("seed %d", seed).isEqualTo(alone);
    var lingering = new double[200];
    for (int i = 1; i < lingering.length; i++) {
      lingering[i] = 0.8 * lingering[i - 1] + random.nextGaussian();
    }
    // An autocorrelation of 0.8 leaves (1 - 0.8) / (1 + 0.8) of 200 independent values.
    assertThat(TwoSamples.independent(lingering).length).as("seed %d", seed).isBetween(10, 45);
    var same = new double[] {7, 7, 7, 7, 7, 7, 7, 7};
    assertThat(TwoSamples.independent(same)).isEqualTo(same);
  }

  /// The probability of a perfect order of n and n values is 1 in (2n over n), on each side.
  @Test
  void moreConfidenceNeedsMoreValues() {
    assertThat(TwoSamples.leastRounds(0.95)).isEqualTo(4); // 2 / 70
    assertThat(TwoSamples.leastRounds(0.99)).isEqualTo(5); // 2 / 252
    assertThat(TwoSamples.leastRounds(0.999)).isEqualTo(7); // 2 / 3432
  }
}
