package braid.natives.cuda;

import braid.natives.load.BraidNativeMissing;
import braid.natives.load.Feature;
import braid.natives.load.Libraries;
import braid.natives.load.Libraries.Library;
import java.util.Optional;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.Pointer;

/// The CUDA driver, loaded and initialized at its first use.
final class Driver {
  private Driver() {}

  /// Returns why no GPU is usable; empty if one is.
  static Optional<String> missing() {
    return Initialization.MISSING;
  }

  static int devices() {
    return Initialization.MISSING.isPresent() ? 0 : Initialization.DEVICES[0];
  }

  static String name(int code) {
    var text = new BytePointer((Pointer) null);
    return cudart.cuGetErrorName(code, text) == cudart.CUDA_SUCCESS
        ? text.getString()
        : "error " + code;
  }

  static String text(int code) {
    var text = new BytePointer((Pointer) null);
    return cudart.cuGetErrorString(code, text) == cudart.CUDA_SUCCESS
        ? text.getString()
        : "the driver has no text for it";
  }

  static GpuError error(String call, int code, String place, String remedy) {
    return new GpuError(call, code, name(code), text(code), place, remedy);
  }

  private static final class Initialization {
    private static final int[] DEVICES = new int[1];
    private static final Optional<String> MISSING = initialize();

    private static Optional<String> initialize() {
      try {
        Libraries.require(Library.CUDA_DRIVER);
        Libraries.require(Library.CUDA_RUNTIME);
        call("cuInit", cudart.cuInit(0));
        var version = new int[1];
        call("cuDriverGetVersion", cudart.cuDriverGetVersion(version));
        var refusal = Feature.RANKS.refusal(Feature.cuda(version[0]));
        if (refusal.isPresent()) {
          return because(refusal.get() + "; " + Feature.RANKS.component().remedy());
        }
        call("cuDeviceGetCount", cudart.cuDeviceGetCount(DEVICES));
        return DEVICES[0] > 0
            ? Optional.empty()
            : because("no device was found; " + Remedies.of(cudart.CUDA_ERROR_NO_DEVICE));
      } catch (BraidNativeMissing | GpuError e) {
        return because(String.valueOf(e.getMessage()));
      } catch (LinkageError e) {
        return because("JavaCPP's bindings could not be loaded (%s)".formatted(e));
      }
    }

    private static void call(String call, int code) {
      if (code != cudart.CUDA_SUCCESS) {
        throw error(call, code, "", Remedies.of(code));
      }
    }

    private static Optional<String> because(String reason) {
      return Optional.of("no GPU can be used: " + reason);
    }
  }
}
