package braid.natives.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.natives.load.BraidNativeMissing;
import org.junit.jupiter.api.Test;

/// Behavior of a machine without a GPU.
class GpuMissingTest {
  @Test
  void aMissingGpuIsOneLineAndNoException() {
    var missing = Gpu.missing();
    assumeTrue(missing.isPresent(), "this machine has a GPU");
    assertThat(missing.get()).startsWith("no GPU can be used: ").doesNotContain("\n");
    assertThat(Gpu.missing()).isEqualTo(missing);
    assertThat(Gpu.count()).isZero();
    assertThatThrownBy(() -> Gpu.open(0, "rank 0"))
        .isInstanceOf(BraidNativeMissing.class)
        .hasMessage(missing.get());
  }
}
