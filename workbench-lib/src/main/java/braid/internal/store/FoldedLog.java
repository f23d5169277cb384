package braid.internal.store;

import java.time.Duration;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;

/// A log that does not repeat itself. The first line of a kind is printed at once; more of that
/// kind are counted, and their number is printed at most once a minute and at the end.
public final class FoldedLog implements AutoCloseable {
  private static final long INTERVAL_NANOS = Duration.ofMinutes(1).toNanos();

  /// Kinds may hold what a stranger sent: there are never more than these.
  private static final int MAX_KINDS = 100;

  private static final String OTHERS = "other such lines";

  private static final class Repeated {
    private final String what;
    private long count;
    private long saidNanos;

    private Repeated(String what, long saidNanos) {
      this.what = what;
      this.saidNanos = saidNanos;
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

  /// Prints `first`, or counts it. Lines are of one kind if `what` is the same in all but numbers.
  ///
  /// @param what the event without what is different each time
  public synchronized void repeated(String what, String first) {
    long now = System.nanoTime();
    var kind = kinds.size() < MAX_KINDS ? what.replaceAll("[0-9]+", "#") : OTHERS;
    var before = kinds.putIfAbsent(kind, new Repeated(kind.equals(OTHERS) ? OTHERS : what, now));
    if (before == null) {
      log.accept(first);
      return;
    }
    before.count++;
    if (now - before.saidNanos >= INTERVAL_NANOS) {
      say(before);
      before.saidNanos = now;
    }
  }

  private void say(Repeated repeated) {
    if (repeated.count > 0) {
      log.accept(
          String.format(
              Locale.ROOT,
              "%s (%,d more %s)",
              repeated.what,
              repeated.count,
              repeated.count == 1 ? "time" : "times"));
      repeated.count = 0;
    }
  }

  /// Prints what was counted and not yet printed. Twice is harmless.
  @Override
  public synchronized void close() {
    kinds.values().forEach(this::say);
  }
}
