package braid.natives.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import org.bytedeco.cuda.global.cudart;
import org.junit.jupiter.api.Test;

class GpuErrorTest {
  @Test
  void anErrorIsOneLineWithCallAndRemedy() {
    var error =
        new GpuError(
            "cuMemCreate",
            cudart.CUDA_ERROR_OUT_OF_MEMORY,
            "CUDA_ERROR_OUT_OF_MEMORY",
            "out of memory",
            "rank 3, device 3 (NVIDIA H200)",
            Remedies.of(cudart.CUDA_ERROR_OUT_OF_MEMORY));
    assertThat(error)
        .hasMessage(
            "cuMemCreate failed: CUDA_ERROR_OUT_OF_MEMORY (out of memory) on rank 3, device 3"
                + " (NVIDIA H200); free memory or allocate less");
    assertThat(error.call()).isEqualTo("cuMemCreate");
    assertThat(error.code()).isEqualTo(2);
    assertThat(error.name()).isEqualTo("CUDA_ERROR_OUT_OF_MEMORY");
  }

  @Test
  void anUnknownDetailIsLeftOut() {
    assertThat(new GpuError("cuInit", 999, "CUDA_ERROR_UNKNOWN", "unknown error", "", ""))
        .hasMessage("cuInit failed: CUDA_ERROR_UNKNOWN (unknown error)");
  }

  @Test
  void remediesAreOneLineEach() {
    for (int code = 0; code < 1000; code++) {
      assertThat(Remedies.of(code)).doesNotContain("\n").doesNotEndWith(".");
    }
    assertThat(Remedies.ofMemory(4L << 30, 1L << 30, 8L << 30))
        .isEqualTo(
            "4294967296 bytes were requested but 1073741824 of 8589934592 are free; free memory or"
                + " allocate less");
  }
}
