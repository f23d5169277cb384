package braid;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class MachineLoadTest {
  @Test
  void otherProcessesAreToldWithTheLoad() {
    assertThat(MachineLoad.note(1.64, 2, 15.2))
        .contains("load 15 on 2 cores: other processes keep 1.6 of them busy");
    assertThat(MachineLoad.note(1, 4, 1.1)).isPresent();
  }

  /// The load average of ranks that kept all processors busy a moment ago is high too.
  @Test
  void theRanksOwnLoadIsNoAlarm() {
    assertThat(MachineLoad.note(0, 2, 15)).isEmpty();
    assertThat(MachineLoad.note(-0.3, 2, 8)).isEmpty();
    assertThat(MachineLoad.note(0.6, 2, 4)).isEmpty();
    assertThat(MachineLoad.note(10, 128, 60)).isEmpty();
  }

  @Test
  void onlyAllowedProcessorsCount() {
    var stat =
        List.of(
            "cpu  900 0 100 5000 0 0 0 0 0 0",
            "cpu0 100 20 30 4000 50 6 7 800 9 0",
            "cpu1 1000 0 0 0 0 0 0 0 0 0",
            "cpu2 1 0 0 0 0 0 0 0 0 0",
            "intr 1234",
            "ctxt 5");
    assertThat(MachineLoad.busyNanos(stat, MachineLoad.processors("0")))
        .isEqualTo((100 + 20 + 30 + 6 + 7) * 10_000_000L);
    assertThat(MachineLoad.busyNanos(stat, MachineLoad.processors("0,2")))
        .isEqualTo(164 * 10_000_000L);
    assertThat(MachineLoad.processors("0-2,8,10-11").stream()).containsExactly(0, 1, 2, 8, 10, 11);
  }
}
