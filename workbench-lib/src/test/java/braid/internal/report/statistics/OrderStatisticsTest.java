package braid.internal.report.statistics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.Random;
import org.junit.jupiter.api.Test;

class OrderStatisticsTest {
  private static final double EXACT = 1e-12;

  @Test
  void quantilesInterpolateBetweenNeighbours() {
    double[] values = {40, 10, 30, 20, 50};

    assertThat(Spread.quantile(values, 0)).isEqualTo(10);
    assertThat(Spread.quantile(values, 0.5)).isEqualTo(30);
    assertThat(Spread.quantile(values, 0.1)).isEqualTo(14, within(EXACT));
    assertThat(Spread.quantile(values, 0.9)).isEqualTo(46, within(EXACT));
    assertThat(Spread.quantile(values, 1)).isEqualTo(50);
    assertThat(Spread.quantile(new long[] {1, 2}, 0.5)).isEqualTo(1.5);
    assertThat(Spread.quantile(new long[] {7}, 0.9)).isEqualTo(7);
    assertThatThrownBy(() -> Spread.quantile(new double[0], 0.5))
        .hasMessageContaining("at least 1 value");
  }

  @Test
  void coverageIsTheBinomialOne() {
    // P(the extremes of n values enclose the median) = 1 - 2 * 2^-n
    assertThat(OrderStatistics.coverage(6, 0)).isEqualTo(1 - 2.0 / 64, within(EXACT));
    // For n = 10 and the second from each end: 1 - 2 * (1 + 10) / 1024
    assertThat(OrderStatistics.coverage(10, 1)).isEqualTo(1 - 22.0 / 1024, within(EXACT));
    // For n = 12 and the third: 1 - 2 * (1 + 12 + 66) / 4096
    assertThat(OrderStatistics.coverage(12, 2)).isEqualTo(1 - 158.0 / 4096, within(EXACT));
    assertThat(OrderStatistics.coverage(1, 0)).isZero();
  }

  @Test
  void medianTakesTheNarrowestPairThatIsSureEnough() {
    double[] ten = {1, 2, 3, 4, 5, 6, 7, 8, 9, 100};

    var estimate = OrderStatistics.median(ten, 0.95);

    assertThat(estimate.value()).isEqualTo(5.5);
    assertThat(estimate.low()).isEqualTo(2);
    assertThat(estimate.high()).isEqualTo(9);
    assertThat(estimate.confidence()).isEqualTo(1 - 22.0 / 1024, within(EXACT));
  }

  @Test
  void tooFewValuesGiveTheirRangeAndSayHowLittleThatIsSure() {
    var estimate = OrderStatistics.median(new double[] {3, 1, 2}, 0.95);

    assertThat(estimate.low()).isEqualTo(1);
    assertThat(estimate.high()).isEqualTo(3);
    assertThat(estimate.confidence()).isEqualTo(0.75, within(EXACT));
  }

  @Test
  void intervalsHoldTheTrueMedianAsOftenAsTheySay() {
    long seed = 20260731;
    var random = new Random(seed);
    int trials = 4_000;
    int held = 0;
    for (int trial = 0; trial < trials; trial++) {
      var values = random.doubles(12).map(u -> -Math.log(1 - u)).toArray();
      var estimate = OrderStatistics.median(values, 0.95);
      if (estimate.low() <= Math.log(2) && Math.log(2) <= estimate.high()) {
        held++;
      }
    }
    assertThat(held / (double) trials)
        .as("seed %d", seed)
        .isEqualTo(OrderStatistics.coverage(12, 2), within(0.01));
  }

  @Test
  void hugeCountsDoNotUnderflow() {
    assertThat(OrderStatistics.coverage(10_000, 4_901)).isEqualTo(0.95, within(0.005));
  }
}
