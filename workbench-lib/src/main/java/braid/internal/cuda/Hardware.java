package braid.internal.cuda;

import braid.natives.nvml.Nvml;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;

/// What the GPU is at, as NVML says: a number measured while the GPU was held back is not the
/// number of the one before. Without NVML there are no readings.
public final class Hardware {
  private static final double MILLIS = 1000;

  private final String pciBusId;
  private @Nullable Nvml nvml;

  public Hardware(String pciBusId) {
    this.pciBusId = pciBusId;
  }

  /// What connects the GPU to its peers, for tables.
  public synchronized String links() {
    if (Nvml.missing().isPresent()) {
      return "unknown";
    }
    int links = opened().links(pciBusId).size();
    return links == 0 ? "PCIe" : "NVLink x" + links;
  }

  private Nvml opened() {
    var existing = nvml;
    if (existing == null) {
      existing = Nvml.open();
      nvml = existing;
    }
    return existing;
  }

  public synchronized SequencedMap<String, Long> readings() {
    var readings = new LinkedHashMap<String, Long>();
    if (Nvml.missing().isPresent()) {
      return readings;
    }
    var now = opened().reading(pciBusId);
    known(readings, "SM clock MHz", now.smClockMhz());
    known(readings, "memory clock MHz", now.memoryClockMhz());
    known(readings, "temperature C", now.celsius());
    if (!Double.isNaN(now.watts())) {
      readings.put("power mW", Math.round(now.watts() * MILLIS));
    }
    for (var reason : now.throttleReasons()) {
      readings.put("held back: " + reason, 1L);
    }
    return readings;
  }

  private static void known(Map<String, Long> readings, String name, int value) {
    if (value != Nvml.UNKNOWN) {
      readings.put(name, (long) value);
    }
  }
}
