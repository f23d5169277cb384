package braid.natives.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.natives.cuda.Gpu;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class KernelChecksTest {
  @Test
  void everyKernelIsRight(@TempDir Path cache) {
    var missing = Gpu.missing();
    assumeTrue(missing.isEmpty(), () -> "no kernel is run: " + missing.orElseThrow());
    try (var gpu = Gpu.open(0, "test");
        var kernels = Kernels.load(gpu, cache);
        var attention = AttentionKernels.load(gpu, cache)) {
      assertThat(KernelChecks.run(gpu, kernels, attention, KernelChecks.Group.values()))
          .allMatch(KernelChecks.Result::ok);
    }
  }
}
