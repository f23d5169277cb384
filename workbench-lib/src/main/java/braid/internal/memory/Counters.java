package braid.internal.memory;

import java.util.Collections;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;
import java.util.concurrent.atomic.AtomicLong;

/// Counts this rank's work that takes time outside of iterations. Thread-safe.
public final class Counters {
  private final Map<Counter, AtomicLong> counts = new EnumMap<>(Counter.class);

  public Counters() {
    for (var each : Counter.values()) {
      counts.put(each, new AtomicLong());
    }
  }

  public void add(Counter counter) {
    add(counter, 1);
  }

  public void add(Counter counter, long count) {
    counts.computeIfAbsent(counter, _ -> new AtomicLong()).addAndGet(count);
  }

  /// Returns all counts by name, including zeros.
  public SequencedMap<String, Long> snapshot() {
    var all = new LinkedHashMap<String, Long>();
    counts.forEach((counter, count) -> all.put(counter.text(), count.get()));
    return Collections.unmodifiableSequencedMap(all);
  }
}
