package braid.internal.report.statistics;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SequencedMap;
import java.util.TreeSet;

/// Reasons why compared times may not be comparable: the hardware was not in the same state for all
/// of them.
public final class Doubts {
  /// Largest harmless difference of clocks, as a share. Clocks move in steps of about 15 MHz, and
  /// differ by a step or two at all times; a larger difference may explain a difference in time.
  public static final double MOST_CLOCK_DIFFERENCE = 0.03;

  private Doubts() {}

  /// Returns the reasons in a few words each; empty if there are none.
  ///
  /// @param measured state of the hardware, by configuration
  public static List<String> of(SequencedMap<String, Conditions> measured) {
    var doubts = new ArrayList<String>();
    clocks(measured, doubts);
    heldBack(measured, doubts);
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
    if (difference > MOST_CLOCK_DIFFERENCE) {
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

  private static void heldBack(SequencedMap<String, Conditions> measured, List<String> doubts) {
    var all = measured.values();
    int heldBack = all.stream().mapToInt(Conditions::heldBack).sum();
    if (heldBack > 0) {
      var reasons = new TreeSet<String>();
      all.forEach(each -> reasons.addAll(each.unchosen()));
      doubts.add(
          "the GPUs were held back in %d of %d measurements (%s)"
              .formatted(
                  heldBack,
                  all.stream().mapToInt(Conditions::measurements).sum(),
                  String.join(", ", reasons)));
    }
  }
}
