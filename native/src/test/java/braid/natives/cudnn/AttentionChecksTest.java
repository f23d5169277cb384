package braid.natives.cudnn;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.natives.cuda.Gpu;
import braid.natives.load.Libraries;
import braid.natives.load.Libraries.Library;
import org.junit.jupiter.api.Test;

class AttentionChecksTest {
  @Test
  void attentionIsRight() {
    var missing = Gpu.missing();
    assumeTrue(missing.isEmpty(), () -> "cuDNN is not run: " + missing.orElseThrow());
    assumeTrue(Libraries.find(Library.CUDNN).isPresent(), "cuDNN is not on this machine");
    try (var gpu = Gpu.open(0, "test");
        var cudnn = Cudnn.open(gpu)) {
      assertThat(AttentionChecks.wrong(gpu, cudnn)).isEmpty();
    }
  }
}
