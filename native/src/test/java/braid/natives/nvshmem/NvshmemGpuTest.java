package braid.natives.nvshmem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.natives.cuda.Gpu;
import braid.natives.load.Libraries;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

/// A group of one rank, because a process can be one rank only.
class NvshmemGpuTest {
  private static final long HEAP_BYTES = 64L << 20;
  private static final long BYTES = 1L << 20;

  @Test
  @SuppressWarnings("restricted")
  void aGroupOfOneReachesItself() {
    var missing = Gpu.missing();
    assumeTrue(missing.isEmpty(), () -> missing.orElse(""));
    assumeTrue(
        Libraries.find(Libraries.Library.NVSHMEM).isPresent(), "NVSHMEM is not installed here");
    try (var gpu = Gpu.open(0, "the test");
        var stream = gpu.stream(gpu.leastPriority());
        var nvshmem = Nvshmem.open(gpu, 0, 1, Nvshmem.uniqueId(HEAP_BYTES), HEAP_BYTES)) {
      var memory = nvshmem.allocate(2 * BYTES);
      assertThat(nvshmem.pointer(memory, 0)).isEqualTo(memory);
      gpu.fill(memory, (byte) 5, BYTES);
      gpu.fill(memory + BYTES, (byte) 0, BYTES);
      nvshmem.putOnStream(memory + BYTES, memory, BYTES, 0, stream);
      nvshmem.quietOnStream(stream);
      stream.synchronize();
      var expected = new byte[(int) BYTES];
      Arrays.fill(expected, (byte) 5);
      var host = gpu.allocatePinned(BYTES);
      gpu.copy(host, memory + BYTES, BYTES);
      assertThat(MemorySegment.ofAddress(host).reinterpret(BYTES).toArray(ValueLayout.JAVA_BYTE))
          .isEqualTo(expected);
      gpu.freePinned(host);
      assertThatThrownBy(() -> nvshmem.pointer(memory, 1)).hasMessageContaining("0..0 but was 1");
    }
  }
}
