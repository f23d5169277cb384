package braid.natives.nvml;

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
  void theLibraryIsLoadedOrItsReasonIsOneLine() {
    Nvml.missing().ifPresent(reason -> assertThat(reason).isNotBlank().doesNotContain("\n"));
  }

  @Test
  void listsTheGpus() {
    Nvml.missing().ifPresent(reason -> assumeTrue(false, reason));
    try (var nvml = Nvml.open()) {
      var inventory = nvml.inventory();
      assertThat(inventory.cudaVersion()).isGreaterThan(11000);
      var gpus = inventory.gpus();
      assertThat(gpus)
          .allSatisfy(
              gpu -> {
                assertThat(gpu.name()).isNotBlank();
                assertThat(gpu.uuid()).startsWith("GPU-");
                assertThat(gpu.totalBytes()).isGreaterThanOrEqualTo(gpu.freeBytes());
                assertThat(gpu.major()).isBetween(3, 20);
              });
      if (gpus.size() > 1) {
        assertThat(inventory.path(gpus.getFirst().index(), gpus.getLast().index()))
            .isIn((Object[]) PeerPath.values());
      }
    }
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
      assertThat(nvml.links(gpu.pciBusId())).allSatisfy(link -> assertThat(link).isLessThan(18));
    }
  }
}
