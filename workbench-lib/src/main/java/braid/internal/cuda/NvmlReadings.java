package braid.internal.cuda;

import braid.model.HardwareReading;
import braid.natives.cuda.GpuError;
import braid.natives.nvml.Nvml;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// State of the GPU according to NVML: clocks, power, temperature and throttling, without which
/// measurements cannot be compared. Without NVML there are no readings.
public final class NvmlReadings {
  private static final double MILLIS = 1000;

  private final String pciBusId;
  private final Set<String> printed = new HashSet<>();
  private @Nullable Nvml nvml;

  public NvmlReadings(String pciBusId) {
    this.pciBusId = pciBusId;
  }

  /// Name of the GPU's links to its peers, for tables.
  public synchronized String links() {
    return query(opened -> opened.links(pciBusId).size())
        .map(links -> links == 0 ? "PCIe" : "NVLink x" + links)
        .orElse("unknown");
  }

  /// State for a measurement that has just ended. The GPU may be idle already, which does not count
  /// as throttling.
  public synchronized HardwareReading reading() {
    return now().map(NvmlReadings::reading).orElse(HardwareReading.NONE);
  }

  static HardwareReading reading(Nvml.Reading now) {
    var reasons = new TreeSet<>(now.throttleReasons());
    reasons.remove(Nvml.IDLE);
    return new HardwareReading(
        known(now.smClockMhz()),
        Double.isNaN(now.watts()) ? HardwareReading.UNKNOWN : (int) Math.round(now.watts()),
        known(now.celsius()),
        reasons);
  }

  private static int known(int value) {
    return value == Nvml.UNKNOWN ? HardwareReading.UNKNOWN : value;
  }

  /// Readings by name, for a rank's counters.
  public synchronized SequencedMap<String, Long> readings() {
    var readings = new LinkedHashMap<String, Long>();
    now()
        .ifPresent(
            now -> {
              known(readings, "SM clock MHz", now.smClockMhz());
              known(readings, "memory clock MHz", now.memoryClockMhz());
              known(readings, "temperature C", now.celsius());
              if (!Double.isNaN(now.watts())) {
                readings.put("power mW", Math.round(now.watts() * MILLIS));
              }
              now.throttleReasons().forEach(reason -> readings.put("throttled: " + reason, 1L));
            });
    return readings;
  }

  private Optional<Nvml.Reading> now() {
    return query(opened -> opened.reading(pciBusId));
  }

  /// Queries NVML. Its errors are printed once and yield no reading, since a missing reading must
  /// not fail a run.
  private <T> Optional<T> query(Function<Nvml, T> query) {
    try {
      var existing = nvml;
      if (existing == null && Nvml.missing().isEmpty()) {
        existing = Nvml.open();
        nvml = existing;
      }
      return Optional.ofNullable(existing).map(query);
    } catch (GpuError e) {
      var line = "clocks and power are not available: " + e.getMessage();
      if (printed.add(line)) {
        System.err.println(line);
      }
      return Optional.empty();
    }
  }

  private static void known(Map<String, Long> readings, String name, int value) {
    if (value != Nvml.UNKNOWN) {
      readings.put(name, (long) value);
    }
  }
}
