package braid.natives.nvml;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import braid.natives.ForeignLibrary;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// GPUs of this machine and the paths between them, for a process that only starts ranks. Valid
/// while its [Nvml] is open.
public final class Inventory {
  private static final int TEXT_BYTES = 96;

  /// Total, free and used bytes, in this order.
  private static final int MEMORY_NUMBERS = 3;

  /// More links than any GPU has; a query past the last link fails.
  private static final int MOST_LINKS = 36;

  private static final int MILLIWATTS_PER_WATT = 1000;

  private static final int PEER_READ = 0;
  private static final int PEER_NVLINK = 2;
  private static final int PEER_OK = 0;

  private final NvmlCalls calls;

  Inventory(NvmlCalls calls) {
    this.calls = calls;
  }

  /// Newest CUDA version that the driver supports, for example 13000 for 13.0.
  public int cudaVersion() {
    try (var arena = Arena.ofConfined()) {
      var version = arena.allocate(JAVA_INT);
      calls.check(
          "nvmlSystemGetCudaDriverVersion_v2", (int) calls.cudaVersion.invokeExact(version), "");
      return version.get(JAVA_INT, 0);
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  /// Returns the GPUs that this process may use. `CUDA_VISIBLE_DEVICES` is ignored.
  public List<GpuFacts> gpus() {
    try (var arena = Arena.ofConfined()) {
      var count = arena.allocate(JAVA_INT);
      calls.check("nvmlDeviceGetCount_v2", (int) calls.deviceCount.invokeExact(count), "");
      var gpus = new ArrayList<GpuFacts>();
      for (int index = 0; index < count.get(JAVA_INT, 0); index++) {
        gpu(index, arena).ifPresent(gpus::add);
      }
      return gpus;
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  /// Returns a GPU; empty if this process may not use it, although it is counted.
  private Optional<GpuFacts> gpu(int index, Arena arena) throws Throwable {
    var place = "GPU " + index;
    var slot = arena.allocate(ADDRESS);
    int code = (int) calls.deviceByIndex.invokeExact(index, slot);
    if (code == NvmlCalls.NO_PERMISSION) {
      return Optional.empty();
    }
    calls.check("nvmlDeviceGetHandleByIndex_v2", code, place);
    var gpu = slot.get(ADDRESS, 0);
    var text = arena.allocate(TEXT_BYTES);
    calls.check("nvmlDeviceGetName", (int) calls.name.invokeExact(gpu, text, TEXT_BYTES), place);
    var name = text.getString(0);
    calls.check("nvmlDeviceGetUUID", (int) calls.uuid.invokeExact(gpu, text, TEXT_BYTES), place);
    var uuid = text.getString(0);
    var memory = arena.allocate(JAVA_LONG, MEMORY_NUMBERS);
    supported("nvmlDeviceGetMemoryInfo", (int) calls.memory.invokeExact(gpu, memory), place);
    var major = arena.allocate(JAVA_INT);
    var minor = arena.allocate(JAVA_INT);
    calls.check(
        "nvmlDeviceGetCudaComputeCapability",
        (int) calls.capability.invokeExact(gpu, major, minor),
        place);
    return Optional.of(
        new GpuFacts(
            index,
            name,
            uuid,
            memory.getAtIndex(JAVA_LONG, 0),
            memory.getAtIndex(JAVA_LONG, 1),
            major.get(JAVA_INT, 0),
            minor.get(JAVA_INT, 0),
            linksUp(gpu, arena)));
  }

  private int linksUp(MemorySegment gpu, Arena arena) throws Throwable {
    var up = arena.allocate(JAVA_INT);
    int links = 0;
    for (int link = 0; link < MOST_LINKS; link++) {
      if ((int) calls.linkState.invokeExact(gpu, link, up) != NvmlCalls.SUCCESS) {
        break; // a GPU without links, or the end of them
      }
      links += up.get(JAVA_INT, 0) == 0 ? 0 : 1;
    }
    return links;
  }

  /// Returns the limits of the GPU with this index.
  public GpuSettings settings(int index) {
    try (var arena = Arena.ofConfined()) {
      var gpu = handle(index, arena);
      var room = arena.allocate(JAVA_INT);
      return new GpuSettings(
          highestClock(gpu, Nvml.CLOCK_SM, room),
          highestClock(gpu, Nvml.CLOCK_MEMORY, room),
          supported(
                  "nvmlDeviceGetEnforcedPowerLimit",
                  (int) calls.powerLimit.invokeExact(gpu, room),
                  "GPU " + index)
              ? room.get(JAVA_INT, 0) / MILLIWATTS_PER_WATT
              : Nvml.UNKNOWN);
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  private int highestClock(MemorySegment gpu, int index, MemorySegment room) throws Throwable {
    return supported(
            "nvmlDeviceGetMaxClockInfo", (int) calls.highestClock.invokeExact(gpu, index, room), "")
        ? room.get(JAVA_INT, 0)
        : Nvml.UNKNOWN;
  }

  /// Returns the path by which GPU `from` accesses the memory of GPU `to`, by index.
  public PeerPath path(int from, int to) {
    try (var arena = Arena.ofConfined()) {
      var a = handle(from, arena);
      var b = handle(to, arena);
      return peers(a, b, PEER_NVLINK, arena)
          ? PeerPath.NVLINK
          : peers(a, b, PEER_READ, arena) ? PeerPath.PCIE : PeerPath.NONE;
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }

  private MemorySegment handle(int index, Arena arena) throws Throwable {
    var slot = arena.allocate(ADDRESS);
    calls.check(
        "nvmlDeviceGetHandleByIndex_v2",
        (int) calls.deviceByIndex.invokeExact(index, slot),
        "GPU " + index);
    return slot.get(ADDRESS, 0);
  }

  private boolean peers(MemorySegment a, MemorySegment b, int capability, Arena arena)
      throws Throwable {
    var status = arena.allocate(JAVA_INT);
    return supported(
            "nvmlDeviceGetP2PStatus",
            (int) calls.peerStatus.invokeExact(a, b, capability, status),
            "")
        && status.get(JAVA_INT, 0) == PEER_OK;
  }

  /// Returns false if the GPU does not support the call; throws for any other failure.
  private boolean supported(String call, int code, String place) {
    if (code == NvmlCalls.NOT_SUPPORTED) {
      return false;
    }
    calls.check(call, code, place);
    return true;
  }
}
