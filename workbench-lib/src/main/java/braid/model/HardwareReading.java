package braid.model;

import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.ToIntFunction;
import java.util.stream.IntStream;

/// State of the hardware right after a measurement, as far as it reports it. Times taken at
/// different clocks are not comparable.
///
/// @param smClockMhz lowest clock of several GPUs
/// @param watts highest power of several GPUs, over the last second
/// @param celsius highest temperature of several GPUs
/// @param heldBackBy reasons why clocks were below their maximum, in words; of several GPUs all
///   reasons
public record HardwareReading(int smClockMhz, int watts, int celsius, Set<String> heldBackBy) {
  /// Represents a number that the hardware does not report.
  public static final int UNKNOWN = -1;

  /// A reading of hardware that reports none.
  public static final HardwareReading NONE =
      new HardwareReading(UNKNOWN, UNKNOWN, UNKNOWN, Set.of());

  public HardwareReading {
    check("SM clock in MHz", smClockMhz);
    check("power in watts", watts);
    check("temperature in degrees Celsius", celsius);
    // Sorted, so that the saved text is always the same.
    heldBackBy = Collections.unmodifiableSet(new TreeSet<>(heldBackBy));
  }

  private static void check(String quantity, int value) {
    if (value < UNKNOWN) {
      throw new BraidException(
          "a reading's %s must be 0 or more, or %d for unknown, but was %d"
              .formatted(quantity, UNKNOWN, value));
    }
  }

  /// Merges the readings of all GPUs, measurement by measurement: together they are as slow as the
  /// slowest.
  public static List<HardwareReading> together(List<List<HardwareReading>> ofGpus) {
    return IntStream.range(0, ofGpus.getFirst().size())
        .mapToObj(index -> one(ofGpus.stream().map(readings -> readings.get(index)).toList()))
        .toList();
  }

  private static HardwareReading one(List<HardwareReading> ofGpus) {
    var reasons = new TreeSet<String>();
    ofGpus.forEach(each -> reasons.addAll(each.heldBackBy));
    return new HardwareReading(
        known(ofGpus, HardwareReading::smClockMhz).min().orElse(UNKNOWN),
        known(ofGpus, HardwareReading::watts).max().orElse(UNKNOWN),
        known(ofGpus, HardwareReading::celsius).max().orElse(UNKNOWN),
        reasons);
  }

  private static IntStream known(
      List<HardwareReading> readings, ToIntFunction<HardwareReading> number) {
    return readings.stream().mapToInt(number).filter(value -> value != UNKNOWN);
  }
}
