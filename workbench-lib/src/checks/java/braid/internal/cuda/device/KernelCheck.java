package braid.internal.cuda.device;

import braid.model.SelfCheck;
import braid.natives.kernels.KernelChecks;

/// Checks a group of our kernels on this rank's GPU against plain loops.
public record KernelCheck(CudaDevice device, KernelChecks.Group group) implements SelfCheck {
  @Override
  public String name() {
    return "our kernels: " + group;
  }

  @Override
  public String run() {
    return KernelChecks.run(device.gpu(), device.kernels(), device.attender().kernels(), group)
        .stream()
        .filter(result -> !result.ok())
        .findFirst()
        .map(wrong -> "%s, %s: %s".formatted(wrong.kernel(), wrong.subject(), wrong.detail()))
        .orElse("");
  }
}
