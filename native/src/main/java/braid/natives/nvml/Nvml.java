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

/// State of GPUs beyond CUDA: clocks, power, temperature, throttle reasons, links. Read-only, needs
/// no CUDA context, and may be used by any thread.
public final class Nvml implements AutoCloseable {
  /// Value that a device does not report, as is common for virtual ones.
  public static final int UNKNOWN = -1;

  /// Reasons that do not slow work down: the GPU is idle, or these clocks were chosen.
  public static final String IDLE = "idle";

  public static final String SET_BY_APPLICATION = "clocks set by application";
  public static final String DISPLAY_CLOCKS = "display clocks";

  static final int CLOCK_SM = 1;
  static final int CLOCK_MEMORY = 2;
  private static final int SENSOR_GPU = 0;
  private static final int MOST_LINKS = 18;
  private static final int VERSION_BYTES = 96;

  /// State of a GPU at one moment. Clocks in MHz; power is averaged over the last second; `UNKNOWN`
  /// (power: NaN) if the device does not report a value. `throttleReasons` are those for clocks
  /// below their maximum.
  public record Reading(
      int smClockMhz, int memoryClockMhz, double watts, int celsius, Set<String> throttleReasons) {
    public Reading {
      throttleReasons = Set.copyOf(throttleReasons);
    }
  }

  private final NvmlCalls calls;
  private boolean closed;

  private Nvml(NvmlCalls calls) {
    this.calls = calls;
  }

  /// Returns why NVML is unavailable; empty if it is available. Never throws.
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

  /// Returns the inventory of GPUs.
  public Inventory inventory() {
    return new Inventory(calls);
  }

  /// Version of the driver, such as "580.65.06".
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

  /// Reads the state of the GPU with this bus id.
  public Reading reading(String pciBusId) {
    try (var arena = Arena.ofConfined()) {
      var device = device(pciBusId, arena);
      var room = arena.allocate(JAVA_LONG);
      var smClock = number(clock(device, CLOCK_SM, room, pciBusId), room);
      var memoryClock = number(clock(device, CLOCK_MEMORY, room, pciBusId), room);
      var milliwatts =
          number(
              supported(
                  "nvmlDeviceGetPowerUsage", (int) calls.power.invokeExact(device, room), pciBusId),
              room);
      var celsius =
          number(
              supported(
                  "nvmlDeviceGetTemperature",
                  (int) calls.temperature.invokeExact(device, SENSOR_GPU, room),
                  pciBusId),
              room);
      var reasons =
          supported(
                  "nvmlDeviceGetCurrentClocksEventReasons",
                  (int) calls.clockReasons.invokeExact(device, room),
                  pciBusId)
              ? reasons(room.get(JAVA_LONG, 0))
              : Set.<String>of();
      return new Reading(
          smClock,
          memoryClock,
          milliwatts == UNKNOWN ? Double.NaN : milliwatts / 1000.0,
          celsius,
          reasons);
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  /// Returns the numbers of NVLinks that are up; empty if the GPU has none.
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

  /// Closes this handle. NVML counts its users, so others of this process may continue. Further
  /// calls have no effect.
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

  private boolean clock(MemorySegment device, int index, MemorySegment room, String pciBusId)
      throws Throwable {
    return supported(
        "nvmlDeviceGetClockInfo", (int) calls.clock.invokeExact(device, index, room), pciBusId);
  }

  /// Returns false if the device does not support the call; throws for any other failure.
  private boolean supported(String call, int code, String pciBusId) {
    if (code == NvmlCalls.NOT_SUPPORTED) {
      return false;
    }
    calls.check(call, code, pciBusId);
    return true;
  }

  private static int number(boolean supported, MemorySegment room) {
    return supported ? room.get(JAVA_INT, 0) : UNKNOWN;
  }

  /// Decodes the bits of `nvmlClocksEventReason…`.
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
