package braid.internal.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class SignalValuesTest {
  @Test
  void laterStepsSatisfyAWaitAndEarlierOnesDoNot() {
    long awaited = SignalValues.counted(3, 5);
    assertThat(SignalValues.reached(SignalValues.counted(3, 4), awaited)).isFalse();
    assertThat(SignalValues.reached(SignalValues.counted(3, 5), awaited)).isTrue();
    assertThat(SignalValues.reached(SignalValues.counted(3, 6), awaited)).isTrue();
  }

  @Test
  void valuesOfEarlierEpochsSatisfyNoWait() {
    assertThat(
            SignalValues.reached(
                SignalValues.counted(2, Integer.MAX_VALUE), SignalValues.counted(3, 1)))
        .isFalse();
    for (int parity = 0; parity < 2; parity++) {
      assertThat(
              SignalValues.reached(
                  SignalValues.recorded(2, parity), SignalValues.recorded(3, parity)))
          .isFalse();
      assertThat(SignalValues.reached(SignalValues.recorded(2, parity), SignalValues.counted(3, 1)))
          .isFalse();
    }
  }

  @Test
  void recordedStepsWaitForTheirOwnParityOnly() {
    long even = SignalValues.recorded(1, 0);
    long odd = SignalValues.recorded(1, 1);
    assertThat(SignalValues.reached(even, even)).isTrue();
    assertThat(SignalValues.reached(odd, even)).isFalse();
    assertThat(SignalValues.reached(even, odd)).isFalse();
    assertThat(SignalValues.reached(0, even)).isFalse();
    // Counted values satisfy neither.
    assertThat(SignalValues.reached(SignalValues.counted(1, 2), even)).isFalse();
  }
}
