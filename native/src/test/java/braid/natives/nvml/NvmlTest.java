package braid.natives.nvml;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.abort;

import java.util.List;
import org.junit.jupiter.api.Test;

class NvmlTest {
  @Test
  void saysInOneLineThatThereIsNoDriver() {
    assertThatThrownBy(() -> Nvml.open("libno-driver-of-this-name.so.1").close())
        .isInstanceOf(NvmlFailed.class)
        .hasMessage(
            "libno-driver-of-this-name.so.1 cannot be loaded: it comes with the NVIDIA driver;"
                + " install that, or give the container its GPUs (--gpus all)");
  }

  @Test
  void saysInOneLineThatALibraryIsAnother() {
    assertThatThrownBy(() -> Nvml.open("libc.so.6").close())
        .isInstanceOf(NvmlFailed.class)
        .hasMessage("the NVIDIA driver's library has no nvmlInit_v2; update the driver");
  }

  @Test
  void describesTheGpusThatAreHere() throws NvmlFailed {
    try (var nvml = openOrAbort()) {
      assertThat(nvml.driverVersion()).matches("[0-9.]+");
      assertThat(nvml.cudaVersion()).isGreaterThan(11000);
      var gpus = nvml.gpus();
      for (var gpu : gpus) {
        assertThat(gpu.name()).isNotBlank();
        assertThat(gpu.uuid()).startsWith("GPU-");
        assertThat(gpu.totalBytes()).isGreaterThanOrEqualTo(gpu.freeBytes());
        assertThat(gpu.major()).isBetween(3, 20);
      }
      if (gpus.size() > 1) {
        assertThat(nvml.path(gpus.getFirst().index(), gpus.getLast().index()))
            .isIn(List.of(PeerPath.values()));
      }
    }
  }

  private static Nvml openOrAbort() {
    try {
      return Nvml.open();
    } catch (NvmlFailed e) {
      return abort(e.line());
    }
  }
}
