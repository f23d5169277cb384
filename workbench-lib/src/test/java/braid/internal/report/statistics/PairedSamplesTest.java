package braid.internal.report.statistics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

class PairedSamplesTest {
  private static final double EXACT = 1e-12;

  @Test
  void aFactorThatEveryRoundHasIsFoundExactly() {
    var base = new double[] {100, 250, 90, 1000, 110, 95};
    var times = Arrays.stream(base).map(t -> 1.1 * t).toArray();

    var excess = PairedSamples.excess(base, times, 0.95);

    assertThat(excess.value()).isEqualTo(0.1, within(EXACT));
    assertThat(excess.low()).isEqualTo(0.1, within(EXACT));
    assertThat(excess.high()).isEqualTo(0.1, within(EXACT));
  }

  /// Tables of the signed-rank test have 13 as the critical value of 12 pairs at 95%, two-sided: 13
  /// of the 78 means may lie on either side of the interval.
  @Test
  void intervalIsTheSignedRankTests() {
    var values = new double[] {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048};
    var means = new double[78];
    int index = 0;
    for (int i = 0; i < 12; i++) {
      for (int j = 0; j <= i; j++) {
        means[index++] = (values[i] + values[j]) / 2;
      }
    }
    Arrays.sort(means);

    var centre = PairedSamples.centre(values, 0.95);

    assertThat(centre.low()).isEqualTo(means[13]);
    assertThat(centre.high()).isEqualTo(means[77 - 13]);
    assertThat(centre.value()).isEqualTo((means[38] + means[39]) / 2);
  }

  /// All assignments of signs to 8 ranks, counted.
  @Test
  void confidenceIsThatOfAllSignPatterns() {
    var values = new double[] {1, 2, 4, 8, 16, 32, 64, 128};
    for (double wanted : new double[] {0.5, 0.9, 0.95, 0.99}) {
      var centre = PairedSamples.centre(values, wanted);
      int outside = (int) Arrays.stream(means(values)).filter(m -> m < centre.low()).count();
      int atMost = 0;
      for (int signs = 0; signs < 1 << 8; signs++) {
        int sum = 0;
        for (int rank = 1; rank <= 8; rank++) {
          sum += (signs >> (rank - 1) & 1) * rank;
        }
        atMost += sum <= outside ? 1 : 0;
      }
      assertThat(centre.confidence())
          .isGreaterThanOrEqualTo(wanted)
          .isGreaterThanOrEqualTo(1 - 2 * atMost / 256.0 - EXACT);
    }
  }

  private static double[] means(double[] values) {
    return Arrays.stream(values)
        .flatMap(a -> Arrays.stream(values).filter(b -> b <= a).map(b -> (a + b) / 2))
        .toArray();
  }

  @Test
  void tooFewRoundsSayHowSureTheyAre() {
    var centre = PairedSamples.centre(new double[] {3, 1, 2}, 0.95);
    assertThat(centre.low()).isEqualTo(1);
    assertThat(centre.high()).isEqualTo(3);
    assertThat(centre.confidence()).isEqualTo(0.75, within(EXACT));
    assertThat(PairedSamples.mostConfidence(3)).isEqualTo(0.75, within(EXACT));
  }

  @Test
  void oneOutlierMovesLittle() {
    var base = new double[] {100, 101, 99, 100, 102, 98, 100, 101, 99, 100, 101, 99};
    var hiccup = base.clone();
    hiccup[3] = 100_000;
    var excess = PairedSamples.excess(base, hiccup, 0.95);
    assertThat(excess.value()).isEqualTo(0, within(0.01));
    assertThat(excess.low()).isGreaterThan(-0.01);
  }

  /// Equal times with shared disturbances, drift and outliers, swapped at random in each round: the
  /// interval contains zero at its stated confidence.
  @Test
  void anIntervalCoversTheTruthAsOftenAsItsConfidence() {
    for (int rounds : new int[] {6, 12, 30, 300}) {
      long seed = 17L + rounds;
      var random = new Random(seed);
      int draws = 2_000;
      int missed = 0;
      for (int draw = 0; draw < draws; draw++) {
        var a = new double[rounds];
        var b = new double[rounds];
        for (int round = 0; round < rounds; round++) {
          double mood = 100 + round + 20 * random.nextDouble();
          double early = mood;
          double late = mood * (random.nextInt(4) == 0 ? 3 : 1.02);
          boolean swapped = random.nextBoolean();
          a[round] = swapped ? late : early;
          b[round] = swapped ? early : late;
        }
        var excess = PairedSamples.excess(a, b, 0.95);
        missed += excess.low() > 0 || excess.high() < 0 ? 1 : 0;
      }
      assertThat(missed / (double) draws).as("%d rounds, seed %d", rounds, seed).isLessThan(0.06);
    }
  }
}
