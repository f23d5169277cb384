package braid.natives.nvml;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import braid.natives.ForeignLibrary;
import braid.natives.cuda.GpuError;
import braid.natives.load.Libraries;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import org.jspecify.annotations.Nullable;

/// Functions of NVML that are used here. NVML is part of the driver, so its version is the
/// driver's, and a function may have an older name.
final class NvmlCalls {
  static final int SUCCESS = 0;
  static final int INVALID_ARGUMENT = 2;
  static final int NOT_SUPPORTED = 3;
  static final int NO_PERMISSION = 4;
  private static final int NOT_FOUND = 6;

  private static final int MOST_TEXT_BYTES = 256;

  private static @Nullable NvmlCalls loaded;

  final MethodHandle initialize;
  final MethodHandle shutdown;
  final MethodHandle driverVersion;
  final MethodHandle deviceByPciBusId;
  final MethodHandle clock;
  final MethodHandle highestClock;
  final MethodHandle powerLimit;
  final MethodHandle power;
  final MethodHandle temperature;
  final MethodHandle clockReasons;
  final MethodHandle linkState;
  final MethodHandle cudaVersion;
  final MethodHandle deviceCount;
  final MethodHandle deviceByIndex;
  final MethodHandle name;
  final MethodHandle uuid;
  final MethodHandle memory;
  final MethodHandle capability;
  final MethodHandle peerStatus;
  private final MethodHandle errorString;

  private NvmlCalls(ForeignLibrary library) {
    var ofDevice = FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS);
    var ofDeviceAndNumber = FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT, ADDRESS);
    initialize = library.function("nvmlInit_v2", FunctionDescriptor.of(JAVA_INT));
    shutdown = library.function("nvmlShutdown", FunctionDescriptor.of(JAVA_INT));
    driverVersion =
        library.function(
            "nvmlSystemGetDriverVersion", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT));
    deviceByPciBusId = library.function("nvmlDeviceGetHandleByPciBusId_v2", ofDevice);
    clock = library.function("nvmlDeviceGetClockInfo", ofDeviceAndNumber);
    highestClock = library.function("nvmlDeviceGetMaxClockInfo", ofDeviceAndNumber);
    powerLimit = library.function("nvmlDeviceGetEnforcedPowerLimit", ofDevice);
    power = library.function("nvmlDeviceGetPowerUsage", ofDevice);
    temperature = library.function("nvmlDeviceGetTemperature", ofDeviceAndNumber);
    clockReasons =
        library.function(
            library.has("nvmlDeviceGetCurrentClocksEventReasons")
                ? "nvmlDeviceGetCurrentClocksEventReasons"
                : "nvmlDeviceGetCurrentClocksThrottleReasons",
            ofDevice);
    linkState = library.function("nvmlDeviceGetNvLinkState", ofDeviceAndNumber);
    cudaVersion =
        library.function(
            "nvmlSystemGetCudaDriverVersion_v2", FunctionDescriptor.of(JAVA_INT, ADDRESS));
    deviceCount =
        library.function("nvmlDeviceGetCount_v2", FunctionDescriptor.of(JAVA_INT, ADDRESS));
    deviceByIndex =
        library.function(
            "nvmlDeviceGetHandleByIndex_v2", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS));
    var textOfDevice = FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT);
    name = library.function("nvmlDeviceGetName", textOfDevice);
    uuid = library.function("nvmlDeviceGetUUID", textOfDevice);
    memory = library.function("nvmlDeviceGetMemoryInfo", ofDevice);
    capability =
        library.function(
            "nvmlDeviceGetCudaComputeCapability",
            FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, ADDRESS));
    peerStatus =
        library.function(
            "nvmlDeviceGetP2PStatus",
            FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT, ADDRESS));
    errorString = library.function("nvmlErrorString", FunctionDescriptor.of(ADDRESS, JAVA_INT));
  }

  static synchronized NvmlCalls load() {
    var calls = loaded;
    if (calls == null) {
      calls = new NvmlCalls(ForeignLibrary.at(Libraries.require(Libraries.Library.NVML).path()));
      loaded = calls;
    }
    return calls;
  }

  void check(String call, int code, String place) {
    if (code != SUCCESS) {
      throw new GpuError(call, code, "NVML error " + code, text(code), place, remedy(code));
    }
  }

  @SuppressWarnings("restricted") // a constant text of the library
  private String text(int code) {
    try {
      return ((MemorySegment) errorString.invokeExact(code))
          .reinterpret(MOST_TEXT_BYTES)
          .getString(0);
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  private static String remedy(int code) {
    return switch (code) {
      case NO_PERMISSION -> "ask the machine's owner for access to the device";
      case NOT_FOUND -> "pass a bus id as nvidia-smi prints it";
      default -> "";
    };
  }
}
