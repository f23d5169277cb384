package braid.internal.memory;

import java.util.Collections;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;
import java.util.concurrent.atomic.AtomicLong;

/// How often this rank did what costs time but is no part of an iteration. Any thread may count.
public final class Counters {
  private final Map<Counter, AtomicLong> counts = new EnumMap<>(Counter.class);

  public Counters() {
    for (var each : Counter.values()) {
      counts.put(each, new AtomicLong());
    }
  }

  public void add(Counter what) {
    add(what, 1);
  }

  public void add(Counter what, long count) {
    counts.computeIfAbsent(what, _ -> new AtomicLong()).addAndGet(count);
  }

  /// All counts by name, those that are zero included.
  public SequencedMap<String, Long> snapshot() {
    var all = new LinkedHashMap<String, Long>();
    counts.forEach((what, count) -> all.put(what.text(), count.get()));
    return Collections.unmodifiableSequencedMap(all);
  }
}
