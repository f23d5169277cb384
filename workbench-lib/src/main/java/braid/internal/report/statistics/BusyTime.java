package braid.internal.report.statistics;

import braid.model.Span;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/// Time in which at least one of several spans ran: concurrent spans of two streams count once.
public final class BusyTime {
  private BusyTime() {}

  /// Returns the time in which at least one of some spans ran and none of others.
  public static long outside(List<Span> spans, List<Span> others) {
    var all = new ArrayList<>(spans);
    all.addAll(others);
    return nanos(all) - nanos(others);
  }

  public static long nanos(List<Span> spans) {
    var byStart = spans.stream().sorted(Comparator.comparingLong(Span::startNanos)).toList();
    long busy = 0;
    long until = Long.MIN_VALUE;
    for (var span : byStart) {
      long from = Math.max(span.startNanos(), until);
      if (span.endNanos() > from) {
        busy += span.endNanos() - from;
        until = span.endNanos();
      }
    }
    return busy;
  }
}
