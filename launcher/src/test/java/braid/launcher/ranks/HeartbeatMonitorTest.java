package braid.launcher.ranks;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class HeartbeatMonitorTest {
  private static ProcessState state(char state, long ticks) {
    return new ProcessState(state, ticks);
  }

  @Test
  void aRankThatUsesNoTimeIsSilentAfterFiveBeats() {
    var silence = new HeartbeatMonitor();
    for (int beat = 1; beat < HeartbeatMonitor.FROZEN_BEATS; beat++) {
      assertThat(silence.missed(state('S', 100 + beat))).isFalse();
    }
    assertThat(silence.missed(state('S', 105))).isTrue();
    assertThat(silence.answered()).isTrue();
    assertThat(silence.answered()).isFalse();
    assertThat(silence.missed(state('S', 106))).isFalse();
  }

  @Test
  void aStoppedRankIsSilentHoweverMuchTimeItUsedBefore() {
    var silence = new HeartbeatMonitor();
    for (int beat = 1; beat < HeartbeatMonitor.FROZEN_BEATS; beat++) {
      assertThat(silence.missed(state('R', 100L * beat))).isFalse();
    }
    assertThat(silence.missed(state('T', 1000))).isTrue();
  }

  /// A machine under load or a JVM that collects garbage gets more time.
  @Test
  void aRankThatRunsIsGivenMoreTime() {
    var silence = new HeartbeatMonitor();
    for (int beat = 1; beat < HeartbeatMonitor.PATIENCE_BEATS; beat++) {
      assertThat(silence.missed(state('R', 20L * beat))).as("beat " + beat).isFalse();
    }
    assertThat(silence.missed(state('R', 5000))).isTrue();
  }
}
