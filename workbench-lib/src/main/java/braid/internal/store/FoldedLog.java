package braid.internal.store;

import java.time.Duration;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;

/// A log that folds repeated lines. The first line of a kind is printed at once; further ones are
/// counted, and their number is printed at most once a minute and at the end.
public final class FoldedLog implements AutoCloseable {
  private static final long INTERVAL_NANOS = Duration.ofMinutes(1).toNanos();

  /// Limit of kinds, since they may contain text that a stranger sent.
  private static final int MAX_KINDS = 100;

  private static final String OTHERS = "other such lines";

  private static final class Repeated {
    private final String event;
    private long count;
    private long printedNanos;

    private Repeated(String event, long printedNanos) {
      this.event = event;
      this.printedNanos = printedNanos;
    }
  }

  private final Consumer<String> log;
  private final Map<String, Repeated> kinds = new HashMap<>();

  public FoldedLog(Consumer<String> log) {
    this.log = log;
  }

  /// Prints a line that is never folded.
  public void line(String line) {
    log.accept(line);
  }

  /// Prints `first`, or counts it. Lines are of one kind if their events differ only in numbers.
  ///
  /// @param event description of the event without its varying details
  public synchronized void repeated(String event, String first) {
    long now = System.nanoTime();
    var kind = kinds.size() < MAX_KINDS ? event.replaceAll("[0-9]+", "#") : OTHERS;
    var repeated = kinds.putIfAbsent(kind, new Repeated(kind.equals(OTHERS) ? OTHERS : event, now));
    if (repeated == null) {
      log.accept(first);
      return;
    }
    repeated.count++;
    if (now - repeated.printedNanos >= INTERVAL_NANOS) {
      print(repeated);
      repeated.printedNanos = now;
    }
  }

  private void print(Repeated repeated) {
    if (repeated.count > 0) {
      log.accept(
          String.format(
              Locale.ROOT,
              "%s (%,d more %s)",
              repeated.event,
              repeated.count,
              repeated.count == 1 ? "time" : "times"));
      repeated.count = 0;
    }
  }

  /// Prints the counts that were not yet printed. Idempotent.
  @Override
  public synchronized void close() {
    kinds.values().forEach(this::print);
  }
}
