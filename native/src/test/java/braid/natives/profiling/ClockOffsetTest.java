package braid.natives.profiling;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class ClockOffsetTest {
  @Test
  void anOffsetIsAdded() {
    var offset = offset(1_000_000, 500, 2_000_000, 1_000_500);
    assertThat(offset.nano(1_500_000)).isEqualTo(500_500);
    assertThat(offset.nano(900_000)).isEqualTo(-99_500);
    assertThat(offset.errorNanos()).isEqualTo(40);
  }

  @Test
  void followsADriftAndStatesIt() {
    var offset = offset(0, 0, 1_000_000_000, 1_000_100_000);
    assertThat(offset.nano(0)).isZero();
    assertThat(offset.nano(500_000_000)).isEqualTo(500_050_000);
    assertThat(offset.nano(1_000_000_000)).isEqualTo(1_000_100_000);
    assertThat(offset.errorNanos()).isEqualTo(40 + 50_000);
  }

  @Test
  void aProfileOfNoLengthHasItsFirstOffset() {
    var offset = offset(100, 7, 100, 7);
    assertThat(offset.nano(103)).isEqualTo(10);
  }

  @Test
  void aReadingLiesWithinItsError() {
    var reading = ClockOffset.Reading.take(System::nanoTime);
    assertThat(Math.abs(reading.other() - reading.nano()))
        .isLessThanOrEqualTo(reading.errorNanos());
  }

  private static ClockOffset offset(long other, long nano, long laterOther, long laterNano) {
    return new ClockOffset(
        new ClockOffset.Reading(other, nano, 40),
        new ClockOffset.Reading(laterOther, laterNano, 30));
  }
}
