package braid.internal.report.value;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.Estimate;
import org.junit.jupiter.api.Test;

class PercentTest {
  @Test
  void digitsFollowTheWidthOfTheInterval() {
    var narrow = new Estimate(-0.1234, -0.141, -0.1, 0.95);
    assertThat(Percent.change(narrow)).isEqualTo("−12.3%");
    assertThat(Percent.interval(narrow)).isEqualTo("−14.1 to −10.0");
    assertThat(Percent.of(0.1234, narrow)).isEqualTo("12.3%");
    var wide = new Estimate(-0.1834, -0.441, 0.002, 0.95);
    assertThat(Percent.change(wide)).isEqualTo("−18%");
    assertThat(Percent.interval(wide)).isEqualTo("−44 to 0");
    assertThat(Percent.of(0.1834, wide)).isEqualTo("18%");
  }

  @Test
  void zeroHasNoSign() {
    assertThat(Percent.change(new Estimate(-0.0004, -0.0004, 0.0004, 0.95))).isEqualTo("0%");
    assertThat(Percent.interval(new Estimate(0.01, -0.0004, 0.02, 0.95))).isEqualTo("0 to +2.0");
  }

  @Test
  void noTimeHasNoDecimals() {
    assertThat(TimeScale.format(0)).isEqualTo("0 µs");
    assertThat(TimeScale.format(84_123_456)).isEqualTo("84.1 ms");
    assertThat(TimeScale.seconds(44_100_000_000.0)).isEqualTo("45 s");
    assertThat(TimeScale.seconds(1)).isEqualTo("1 s");
  }
}
