package braid.internal.cuda;

import braid.model.Reading;
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

/// What the GPU is at, as NVML says: a number measured while the GPU was held back is not the
/// number of the one before. Without NVML there are no readings.
public final class NvmlReadings {
  private static final double MILLIS = 1000;

  private final String pciBusId;
  private final Set<String> printed = new HashSet<>();
  private @Nullable Nvml nvml;

  public NvmlReadings(String pciBusId) {
    this.pciBusId = pciBusId;
  }

  /// What connects the GPU to its peers, for tables.
  public synchronized String links() {
    return query(opened -> opened.links(pciBusId).size())
        .map(links -> links == 0 ? "PCIe" : "NVLink x" + links)
        .orElse("unknown");
  }

  /// What it is at, for what was measured just before. It may be idle already, which does not mean
  /// that it was held back.
  public synchronized Reading reading() {
    return now().map(NvmlReadings::reading).orElse(Reading.NONE);
  }

  static Reading reading(Nvml.Reading now) {
    var reasons = new TreeSet<>(now.throttleReasons());
    reasons.remove(Nvml.IDLE);
    return new Reading(
        known(now.smClockMhz()),
        Double.isNaN(now.watts()) ? Reading.UNKNOWN : (int) Math.round(now.watts()),
        known(now.celsius()),
        reasons);
  }

  private static int known(int value) {
    return value == Nvml.UNKNOWN ? Reading.UNKNOWN : value;
  }

  /// By name, for a rank's counters.
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
              now.throttleReasons().forEach(reason -> readings.put("held back: " + reason, 1L));
            });
    return readings;
  }

  private Optional<Nvml.Reading> now() {
    return query(opened -> opened.reading(pciBusId));
  }

  /// Evidence must not end what it is about: what NVML refuses is not known, and said once.
  private <T> Optional<T> query(Function<Nvml, T> query) {
    try {
      var existing = nvml;
      if (existing == null && Nvml.missing().isEmpty()) {
        existing = Nvml.open();
        nvml = existing;
      }
      return Optional.ofNullable(existing).map(query);
    } catch (GpuError e) {
      var line = "clocks and power are not known: " + e.getMessage();
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
