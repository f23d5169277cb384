package braid;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import braid.model.HostLoad;
import java.nio.ByteBuffer;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

class MachineLoadTest {
  @Test
  void otherProcessesAreToldWithTheLoad() {
    var load = new HostLoad(1.64, 2, 15.2);
    assertThat(load.isHigh()).isTrue();
    assertThat(load).hasToString("load 15 on 2 cores: other processes kept 1.6 of them busy");
    assertThat(new HostLoad(1, 4, 1.1).isHigh()).isTrue();
  }

  /// The load average of ranks that kept all processors busy a moment ago is high too.
  @Test
  void theRanksOwnLoadIsNoAlarm() {
    assertThat(new HostLoad(0, 2, 15).isHigh()).isFalse();
    assertThat(new HostLoad(0.6, 2, 4).isHigh()).isFalse();
    assertThat(new HostLoad(10, 128, 60).isHigh()).isFalse();
  }

  @Test
  void aLoadHasNoNegativeNumbers() {
    assertThatThrownBy(() -> new HostLoad(-0.3, 2, 8))
        .isInstanceOf(BraidException.class)
        .hasMessageEndingWith("but has -0.3, 2 and 8.0");
    assertThatThrownBy(() -> new HostLoad(Double.NaN, 2, 8)).isInstanceOf(BraidException.class);
    assertThatThrownBy(() -> new HostLoad(1, 0, 8)).isInstanceOf(BraidException.class);
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

  @Test
  @Tag("F8")
  void onlyRanksOfTheHostCountOnceForEachProcess() {
    var all = List.of(rank(7, 100), rank(8, 20), rank(7, 3_000), rank(7, 90));
    assertThat(MachineLoad.nanos(all, List.of(0, 1))).isEqualTo(120);
    assertThat(MachineLoad.nanos(all, List.of(0, 3))).as("two threads").isEqualTo(100);
    assertThat(MachineLoad.nanos(all, List.of(2))).isEqualTo(3_000);
  }

  private static byte[] rank(long pid, long nanos) {
    return ByteBuffer.allocate(2 * Long.BYTES).putLong(pid).putLong(nanos).array();
  }
}
