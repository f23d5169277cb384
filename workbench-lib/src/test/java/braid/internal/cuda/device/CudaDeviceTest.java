package braid.internal.cuda.device;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Optional;
import org.junit.jupiter.api.Test;

class CudaDeviceTest {
  @Test
  void aMissingGpuIsOneLineThatNamesTheHostBackend() {
    assertThat(
            CudaDevice.refusal(
                Optional.of("no GPU can be used: cuInit failed: CUDA_ERROR_SYSTEM_NOT_READY (…)"),
                0,
                0,
                0))
        .contains(
            "the backend is cuda but no GPU can be used: cuInit failed: CUDA_ERROR_SYSTEM_NOT_READY (…); or run on the host: --backend host");
  }

  @Test
  void aRankWithoutAGpuLearnsTheNumberOfUsableGpus() {
    assertThat(CudaDevice.refusal(Optional.empty(), 2, 1, 1)).isEmpty();
    assertThat(CudaDevice.refusal(Optional.empty(), 2, 2, 2))
        .contains(
            "rank 2 needs GPU 2 but CUDA can use 2 here; start fewer ranks, let them share GPUs (--share-gpus), look at CUDA_VISIBLE_DEVICES, or run on the host: --backend host");
  }
}
