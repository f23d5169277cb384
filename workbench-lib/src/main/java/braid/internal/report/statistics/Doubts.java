package braid.internal.report.statistics;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SequencedMap;
import java.util.TreeSet;

/// Reasons why the times of a study may not be comparable: the hardware was not in the same state
/// for all of them.
public final class Doubts {
  /// Largest harmless difference of clocks, as a fraction. Clocks change in steps of about 15 MHz,
  /// and a difference of one or two steps is usual. A larger one may explain a difference in time.
  public static final double MAX_CLOCK_DIFFERENCE = 0.03;

  /// Largest harmless difference of temperatures between two studies, in degrees Celsius.
  private static final int MOST_DEGREES = 10;

  private Doubts() {}

  /// Returns notable differences of the hardware between two studies: median clocks that differ by
  /// more than [#MAX_CLOCK_DIFFERENCE], highest temperatures by more than 10 °C, and throttling in
  /// only one of the two.
  public static List<String> between(Conditions first, Conditions second) {
    var differences = new ArrayList<String>();
    if (first.smClockMhz().isPresent() && second.smClockMhz().isPresent()) {
      int one = first.smClockMhz().getAsInt();
      int other = second.smClockMhz().getAsInt();
      if (Math.abs(one - other) > MAX_CLOCK_DIFFERENCE * Math.max(one, other)) {
        differences.add("SM clock: %d MHz and %d MHz".formatted(one, other));
      }
    }
    if (first.celsius().isPresent() && second.celsius().isPresent()) {
      int one = first.celsius().getAsInt();
      int other = second.celsius().getAsInt();
      if (Math.abs(one - other) > MOST_DEGREES) {
        differences.add("temperature: %d °C and %d °C".formatted(one, other));
      }
    }
    if (first.throttled() > 0 != second.throttled() > 0) {
      differences.add("clocks reduced by: %s and %s".formatted(first.words(), second.words()));
    }
    return differences;
  }

  /// Returns the reasons in a few words each; empty if there are none.
  ///
  /// @param measured state of the hardware, by configuration
  public static List<String> of(SequencedMap<String, Conditions> measured) {
    var doubts = new ArrayList<String>();
    clocks(measured, doubts);
    throttled(measured, doubts);
    return List.copyOf(doubts);
  }

  private static void clocks(SequencedMap<String, Conditions> measured, List<String> doubts) {
    var known =
        measured.entrySet().stream().filter(e -> e.getValue().smClockMhz().isPresent()).toList();
    if (known.isEmpty()) {
      return;
    }
    var slowest = known.stream().min(Comparator.comparingInt(Doubts::clock)).orElseThrow();
    var fastest = known.stream().max(Comparator.comparingInt(Doubts::clock)).orElseThrow();
    double difference = 1 - (double) clock(slowest) / Math.max(1, clock(fastest));
    if (difference > MAX_CLOCK_DIFFERENCE) {
      doubts.add(
          "SM clocks differed by %s (%d MHz at %s, %d MHz at %s)"
              .formatted(
                  String.format(Locale.ROOT, "%.1f%%", 100 * difference),
                  clock(slowest),
                  slowest.getKey(),
                  clock(fastest),
                  fastest.getKey()));
    }
  }

  private static int clock(Map.Entry<String, Conditions> measured) {
    return measured.getValue().smClockMhz().orElseThrow();
  }

  private static void throttled(SequencedMap<String, Conditions> measured, List<String> doubts) {
    var all = measured.values();
    int throttled = all.stream().mapToInt(Conditions::throttled).sum();
    if (throttled > 0) {
      var reasons = new TreeSet<String>();
      all.forEach(each -> reasons.addAll(each.reasonsNotSetByUser()));
      doubts.add(
          "the GPUs were throttled in %d of %d measurements (%s)"
              .formatted(
                  throttled,
                  all.stream().mapToInt(Conditions::measurements).sum(),
                  String.join(", ", reasons)));
    }
  }
}
