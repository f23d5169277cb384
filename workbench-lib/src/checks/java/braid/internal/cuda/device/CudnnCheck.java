package braid.internal.cuda.device;

import braid.model.SelfCheck;
import braid.natives.cudnn.AttentionSweep;
import braid.natives.load.Libraries;
import braid.natives.load.Libraries.Library;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;

/// Checks cuDNN's attention of short sequences on this rank's GPU against plain loops.
public record CudnnCheck(CudaDevice device) implements SelfCheck {
  private static final int CASES = 40;

  @Override
  public Optional<String> missing() {
    return Libraries.missing(Library.CUDNN);
  }

  @Override
  public String name() {
    return "cuDNN's attention of short sequences";
  }

  @Override
  public String run() {
    return AttentionSweep.firstWrong(device.gpu(), CASES, ThreadLocalRandom.current().nextInt())
        .orElse("");
  }
}
