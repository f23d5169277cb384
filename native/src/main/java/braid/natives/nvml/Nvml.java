package braid.natives.nvml;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import braid.natives.ForeignLibrary;
import braid.natives.cuda.GpuError;
import braid.natives.load.BraidNativeMissing;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;

/// What the driver knows of a GPU besides CUDA: clocks, power, heat, why it runs slower than it
/// could, links. Reads only, needs no CUDA context, and may be asked by any thread.
public final class Nvml implements AutoCloseable {
  /// What a device does not tell; a virtual one, for example, tells little.
  public static final int UNKNOWN = -1;

  /// Reasons that hold nobody back: nothing runs, or somebody chose these clocks.
  public static final String IDLE = "idle";

  public static final String SET_BY_APPLICATION = "clocks set by application";
  public static final String DISPLAY_CLOCKS = "display clocks";

  static final int CLOCK_SM = 1;
  static final int CLOCK_MEMORY = 2;
  private static final int SENSOR_GPU = 0;
  private static final int MOST_LINKS = 18;
  private static final int VERSION_BYTES = 96;

  /// A moment of a GPU. Clocks in MHz; the power over the last second; `UNKNOWN` (power: NaN) for
  /// what the device does not tell. Reasons are those for which clocks are not at their highest.
  public record Reading(
      int smClockMhz,
      int memoryClockMhz,
      double watts,
      int celsius,
      Set<String> throttleReasons,
      int utilisation) {
    public Reading {
      throttleReasons = Set.copyOf(throttleReasons);
    }
  }

  private final NvmlCalls calls;
  private boolean closed;

  private Nvml(NvmlCalls calls) {
    this.calls = calls;
  }

  /// Why there is no NVML here; empty where there is. Never throws.
  public static Optional<String> missing() {
    try (var _ = open()) {
      return Optional.empty();
    } catch (BraidNativeMissing | GpuError | UnsatisfiedLinkError e) {
      return Optional.of(String.valueOf(e.getMessage()));
    }
  }

  public static Nvml open() {
    var calls = NvmlCalls.load();
    try {
      calls.check("nvmlInit_v2", (int) calls.initialize.invokeExact(), "");
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
    return new Nvml(calls);
  }

  /// Which GPUs there are.
  public Inventory inventory() {
    return new Inventory(calls);
  }

  /// Such as "580.65.06".
  public String driverVersion() {
    try (var arena = Arena.ofConfined()) {
      var text = arena.allocate(VERSION_BYTES);
      calls.check(
          "nvmlSystemGetDriverVersion",
          (int) calls.driverVersion.invokeExact(text, VERSION_BYTES),
          "");
      return text.getString(0);
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  /// The GPU at this bus id, now.
  public Reading reading(String pciBusId) {
    try (var arena = Arena.ofConfined()) {
      var device = device(pciBusId, arena);
      var room = arena.allocate(JAVA_LONG);
      var smClock = number(clock(device, CLOCK_SM, room, pciBusId), room);
      var memoryClock = number(clock(device, CLOCK_MEMORY, room, pciBusId), room);
      var milliwatts =
          number(
              told(
                  "nvmlDeviceGetPowerUsage", (int) calls.power.invokeExact(device, room), pciBusId),
              room);
      var celsius =
          number(
              told(
                  "nvmlDeviceGetTemperature",
                  (int) calls.temperature.invokeExact(device, SENSOR_GPU, room),
                  pciBusId),
              room);
      var reasons =
          told(
                  "nvmlDeviceGetCurrentClocksEventReasons",
                  (int) calls.clockReasons.invokeExact(device, room),
                  pciBusId)
              ? reasons(room.get(JAVA_LONG, 0))
              : Set.<String>of();
      var utilisation =
          number(
              told(
                  "nvmlDeviceGetUtilizationRates",
                  (int) calls.utilisation.invokeExact(device, room),
                  pciBusId),
              room);
      return new Reading(
          smClock,
          memoryClock,
          milliwatts == UNKNOWN ? Double.NaN : milliwatts / 1000.0,
          celsius,
          reasons,
          utilisation);
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  /// The NVLinks that are up, by number; none where the GPU has none.
  public List<Integer> links(String pciBusId) {
    try (var arena = Arena.ofConfined()) {
      var device = device(pciBusId, arena);
      var active = arena.allocate(JAVA_INT);
      var links = new ArrayList<Integer>();
      for (int link = 0; link < MOST_LINKS; link++) {
        var code = (int) calls.linkState.invokeExact(device, link, active);
        if (code == NvmlCalls.NOT_SUPPORTED || code == NvmlCalls.INVALID_ARGUMENT) {
          break; // a GPU without links, or the end of them
        }
        calls.check("nvmlDeviceGetNvLinkState", code, pciBusId);
        if (active.get(JAVA_INT, 0) != 0) {
          links.add(link);
        }
      }
      return List.copyOf(links);
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  /// Others of this process may still use NVML: it counts who has opened it. Twice is harmless.
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      try {
        calls.check("nvmlShutdown", (int) calls.shutdown.invokeExact(), "");
      } catch (Throwable e) {
        throw ForeignLibrary.unexpected(e);
      }
    }
  }

  private MemorySegment device(String pciBusId, Arena arena) throws Throwable {
    if (closed) {
      throw new IllegalStateException("NVML is closed; open it again");
    }
    var slot = arena.allocate(ADDRESS);
    calls.check(
        "nvmlDeviceGetHandleByPciBusId_v2",
        (int) calls.deviceByPciBusId.invokeExact(arena.allocateFrom(pciBusId), slot),
        pciBusId);
    return slot.get(ADDRESS, 0);
  }

  private boolean clock(MemorySegment device, int which, MemorySegment room, String pciBusId)
      throws Throwable {
    return told(
        "nvmlDeviceGetClockInfo", (int) calls.clock.invokeExact(device, which, room), pciBusId);
  }

  /// False where the device has no answer; any other failure is thrown.
  private boolean told(String call, int code, String pciBusId) {
    if (code == NvmlCalls.NOT_SUPPORTED) {
      return false;
    }
    calls.check(call, code, pciBusId);
    return true;
  }

  private static int number(boolean told, MemorySegment room) {
    return told ? room.get(JAVA_INT, 0) : UNKNOWN;
  }

  /// By the bits of `nvmlClocksEventReason…`.
  static Set<String> reasons(long bits) {
    var names =
        List.of(
            IDLE,
            SET_BY_APPLICATION,
            "power cap",
            "hardware slowdown",
            "sync boost",
            "software thermal slowdown",
            "hardware thermal slowdown",
            "power brake",
            DISPLAY_CLOCKS);
    var reasons = new TreeSet<String>();
    for (int bit = 0; bit < Long.SIZE; bit++) {
      if ((bits >>> bit & 1) != 0) {
        reasons.add(bit < names.size() ? names.get(bit) : "reason of bit " + bit);
      }
    }
    return reasons;
  }
}
