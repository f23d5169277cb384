package braid.natives.nvshmem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.natives.cuda.Gpu;
import braid.natives.load.Libraries;
import org.junit.jupiter.api.Test;

/// A group of one, because a process can be one rank only.
class NvshmemGpuTest {
  private static final long HEAP_BYTES = 64L << 20;
  private static final long BYTES = 1L << 20;

  @Test
  void aGroupOfOneReachesItself() {
    var missing = Gpu.missing();
    assumeTrue(missing.isEmpty(), () -> missing.orElse(""));
    assumeTrue(
        Libraries.find(Libraries.Library.NVSHMEM).isPresent(), "NVSHMEM is not installed here");
    try (var gpu = Gpu.open(0, "the test");
        var stream = gpu.stream(gpu.leastPriority());
        var nvshmem = Nvshmem.open(gpu, 0, 1, Nvshmem.uniqueId(HEAP_BYTES), HEAP_BYTES)) {
      assertThat(nvshmem.version()).matches("3\\.\\d+\\.\\d+");
      var memory = nvshmem.allocate(2 * BYTES);
      var signal = nvshmem.allocate(8);
      assertThat(nvshmem.pointer(memory, 0)).isEqualTo(memory);
      gpu.fill(signal, (byte) 0, 8);
      nvshmem.putOnStream(memory + BYTES, memory, BYTES, 0, stream);
      nvshmem.getOnStream(memory, memory + BYTES, BYTES, 0, stream);
      nvshmem.putSignalOnStream(memory + BYTES, memory, BYTES, signal, 5, 0, stream);
      nvshmem.signalWaitOnStream(signal, 5, stream);
      nvshmem.quietOnStream(stream);
      nvshmem.barrierAllOnStream(stream);
      stream.synchronize();
      assertThatThrownBy(() -> nvshmem.pointer(memory, 1)).hasMessageContaining("0..0 but was 1");
      nvshmem.free(signal);
      nvshmem.free(memory);
    }
  }
}
