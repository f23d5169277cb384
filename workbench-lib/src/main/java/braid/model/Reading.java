package braid.model;

import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.ToIntFunction;
import java.util.stream.IntStream;

/// What the hardware was at right after a measurement, as far as it tells: a time that was taken at
/// other clocks is another machine's.
///
/// @param smClockMhz of several GPUs the lowest
/// @param watts of several GPUs the highest, over the last second
/// @param celsius of several GPUs the highest
/// @param heldBackBy why clocks were not at their highest, in words; of several GPUs all reasons
public record Reading(int smClockMhz, int watts, int celsius, Set<String> heldBackBy) {
  /// In place of a number that the hardware does not tell.
  public static final int UNKNOWN = -1;

  /// Of hardware that tells nothing.
  public static final Reading NONE = new Reading(UNKNOWN, UNKNOWN, UNKNOWN, Set.of());

  public Reading {
    check("SM clock in MHz", smClockMhz);
    check("power in watts", watts);
    check("temperature in degrees Celsius", celsius);
    // In one order, so that what is saved is always the same text.
    heldBackBy = Collections.unmodifiableSet(new TreeSet<>(heldBackBy));
  }

  private static void check(String what, int value) {
    if (value < UNKNOWN) {
      throw new BraidException(
          "a reading's %s must be 0 or more, or %d for unknown, but was %d"
              .formatted(what, UNKNOWN, value));
    }
  }

  /// Measurement by measurement one of all GPUs, which are as slow together as their slowest.
  public static List<Reading> together(List<List<Reading>> ofGpus) {
    return IntStream.range(0, ofGpus.getFirst().size())
        .mapToObj(at -> one(ofGpus.stream().map(readings -> readings.get(at)).toList()))
        .toList();
  }

  private static Reading one(List<Reading> ofGpus) {
    var reasons = new TreeSet<String>();
    ofGpus.forEach(each -> reasons.addAll(each.heldBackBy));
    return new Reading(
        known(ofGpus, Reading::smClockMhz).min().orElse(UNKNOWN),
        known(ofGpus, Reading::watts).max().orElse(UNKNOWN),
        known(ofGpus, Reading::celsius).max().orElse(UNKNOWN),
        reasons);
  }

  private static IntStream known(List<Reading> readings, ToIntFunction<Reading> number) {
    return readings.stream().mapToInt(number).filter(value -> value != UNKNOWN);
  }
}
