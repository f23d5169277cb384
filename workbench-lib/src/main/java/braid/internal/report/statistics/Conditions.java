package braid.internal.report.statistics;

import braid.model.HardwareReading;
import braid.natives.nvml.Nvml;
import java.util.List;
import java.util.OptionalInt;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.function.ToIntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/// State of the hardware over all measurements of one configuration.
///
/// @param smClockMhz median clock
/// @param watts median power
/// @param celsius highest temperature
/// @param reasons number of measurements with reduced clocks, by reason
/// @param throttled number of measurements with clocks reduced by a reason other than the user's
///   settings
public record Conditions(
    int measurements,
    OptionalInt smClockMhz,
    OptionalInt watts,
    OptionalInt celsius,
    SortedMap<String, Integer> reasons,
    int throttled) {
  /// Reasons that are the user's own settings, the same for all compared configurations.
  private static final Set<String> USER_SETTINGS =
      Set.of(Nvml.SET_BY_APPLICATION, Nvml.DISPLAY_CLOCKS);

  public static Conditions of(List<HardwareReading> readings) {
    var reasons = new TreeMap<String, Integer>();
    readings.forEach(
        each -> each.heldBackBy().forEach(reason -> reasons.merge(reason, 1, Integer::sum)));
    return new Conditions(
        readings.size(),
        median(known(readings, HardwareReading::smClockMhz)),
        median(known(readings, HardwareReading::watts)),
        known(readings, HardwareReading::celsius).max(),
        reasons,
        (int)
            readings.stream()
                .filter(each -> !USER_SETTINGS.containsAll(each.heldBackBy()))
                .count());
  }

  private static IntStream known(
      List<HardwareReading> readings, ToIntFunction<HardwareReading> number) {
    return readings.stream().mapToInt(number).filter(value -> value != HardwareReading.UNKNOWN);
  }

  private static OptionalInt median(IntStream values) {
    var all = values.asDoubleStream().toArray();
    return all.length == 0
        ? OptionalInt.empty()
        : OptionalInt.of((int) Math.round(Spread.quantile(all, 0.5)));
  }

  /// Returns the reasons other than the user's settings.
  Set<String> reasonsNotSetByUser() {
    var others = new TreeMap<>(reasons).keySet();
    others.removeAll(USER_SETTINGS);
    return others;
  }

  /// Returns the reasons in words: "power cap (3 of 12)", or "nothing".
  public String words() {
    return reasons.isEmpty()
        ? "nothing"
        : reasons.entrySet().stream()
            .map(each -> "%s (%d of %d)".formatted(each.getKey(), each.getValue(), measurements))
            .collect(Collectors.joining(", "));
  }
}
