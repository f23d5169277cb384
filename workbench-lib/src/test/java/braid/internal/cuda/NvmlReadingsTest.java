package braid.internal.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.HardwareReading;
import braid.natives.nvml.Nvml;
import java.util.Set;
import org.junit.jupiter.api.Test;

class NvmlReadingsTest {
  @Test
  void idleDoesNotCountAsThrottling() {
    var now = new Nvml.Reading(1905, 3201, 649.6, 61, Set.of("idle", "power cap"));
    assertThat(NvmlReadings.reading(now))
        .isEqualTo(new HardwareReading(1905, 650, 61, Set.of("power cap")));
  }

  @Test
  void missingReadingsAreUnknownNotZero() {
    var now = new Nvml.Reading(Nvml.UNKNOWN, 0, Double.NaN, Nvml.UNKNOWN, Set.of());
    assertThat(NvmlReadings.reading(now)).isEqualTo(HardwareReading.NONE);
  }
}
