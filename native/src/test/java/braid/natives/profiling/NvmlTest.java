package braid.natives.profiling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.natives.cuda.Gpu;
import org.junit.jupiter.api.Test;

class NvmlTest {
  @Test
  void namesWhyClocksAreLow() {
    assertThat(Nvml.reasons(0)).isEmpty();
    assertThat(Nvml.reasons(4 | 64)).containsExactly("hardware thermal slowdown", "power cap");
    assertThat(Nvml.reasons(1L << 40)).containsExactly("reason of bit 40");
  }

  @Test
  void isThereOrSaysInOneLineWhyNot() {
    Nvml.missing().ifPresent(reason -> assertThat(reason).isNotBlank().doesNotContain("\n"));
  }

  @Test
  void readsEveryGpu() {
    var missing = Nvml.missing().or(Gpu::missing);
    assumeTrue(missing.isEmpty(), () -> missing.orElse(""));
    try (var nvml = Nvml.open();
        var gpu = Gpu.open(0, "the test")) {
      assertThat(nvml.driverVersion()).matches("\\d+\\.\\d+.*");
      var reading = nvml.reading(gpu.pciBusId());
      assertThat(reading.smClockMhz()).isPositive();
      assertThat(reading.watts()).isPositive();
      assertThat(reading.celsius()).isPositive();
      assertThat(nvml.links(gpu.pciBusId()))
          .allSatisfy(link -> assertThat(link.number()).isLessThan(18));
    }
  }
}
