package braid.launcher.cli.doctor;

import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuError;
import braid.natives.cuda.VirtualMemory;
import braid.natives.load.BraidNativeMissing;

/// CUDA as a rank sees it: opens the first GPU.
///
/// @param missing why no rank can use a GPU; empty if one can
record Cuda(String missing, String words, boolean sharesVirtualMemory) {
  static Cuda absent(String why) {
    return new Cuda(why, "", false);
  }

  static Cuda here() {
    var missing = Gpu.missing();
    if (missing.isPresent()) {
      return absent(missing.get());
    }
    try (var gpu = Gpu.open(0, "doctor")) {
      int driver = gpu.driverVersion();
      return new Cuda(
          "",
          "shows %d, and opens %s: %d SMs, driver for CUDA %d.%d"
              .formatted(
                  Gpu.count(),
                  gpu.name(),
                  gpu.multiprocessors(),
                  driver / 1000,
                  driver % 1000 / 10),
          VirtualMemory.supported(gpu));
    } catch (GpuError | BraidNativeMissing | UnsatisfiedLinkError e) {
      return absent(String.valueOf(e.getMessage()));
    }
  }
}
