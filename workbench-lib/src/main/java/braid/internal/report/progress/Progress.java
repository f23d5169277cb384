package braid.internal.report.progress;

import braid.internal.rank.Outbox;
import braid.model.MimeBundle;
import java.time.Duration;
import java.util.Locale;
import java.util.UUID;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/// Long work that says how far it is, once it has taken long enough for somebody to wonder. A
/// thread of its own looks and tells: the work only counts, which is one write to memory, so that
/// what it measures stays what it is and no rank waits for one that is telling.
public final class Progress implements AutoCloseable {
  /// Work that is over before that is not shown at all.
  public static final Duration PATIENCE = Duration.ofMillis(500);

  private static final Duration PAUSE = Duration.ofMillis(250);

  private static final ScheduledExecutorService TELLER =
      Executors.newSingleThreadScheduledExecutor(
          Thread.ofPlatform().daemon().name("braid-progress").factory());

  /// Whether work of this thread already tells how far it is: what it consists of then does not.
  private static final ThreadLocal<Boolean> TOLD = ThreadLocal.withInitial(() -> false);

  /// What is done.
  ///
  /// @param doing while it goes on: `profiling`
  /// @param done when it is over: `profiled`
  /// @param steps what is counted: `iterations`
  public record Task(String doing, String done, String steps) {}

  private final Task task;
  private final int steps;
  private final Outbox outbox;
  private final String displayId = "progress-" + UUID.randomUUID();
  private final long startNanos = System.nanoTime();
  private final AtomicInteger count = new AtomicInteger();
  private volatile String state = "";
  private @Nullable ScheduledFuture<?> telling;
  private boolean shown;
  private boolean closed;

  private final boolean toldBefore = TOLD.get();

  private Progress(Task task, int steps, Outbox outbox) {
    this.task = task;
    this.steps = steps;
    this.outbox = outbox;
  }

  /// To be closed by the thread that calls this.
  ///
  /// @param speaks whether this rank tells: one does, for all
  public static Progress of(Task task, int steps, Outbox outbox, boolean speaks) {
    var progress = new Progress(task, steps, outbox);
    // Without a session nothing that was shown can be replaced: it would be line after line.
    if (speaks && !progress.toldBefore && !outbox.equals(Outbox.CONSOLE)) {
      progress.telling =
          TELLER.scheduleWithFixedDelay(
              progress::tell, PATIENCE.toMillis(), PAUSE.toMillis(), TimeUnit.MILLISECONDS);
    }
    TOLD.set(true);
    return progress;
  }

  /// Of work that tells by itself how far it is.
  public static Progress toldElsewhere() {
    return of(new Task("", "", ""), 0, Outbox.CONSOLE, false);
  }

  /// So many are done.
  public void done(int steps) {
    count.setOpaque(steps);
  }

  /// What goes on now; the step before it is done.
  public void step(String name) {
    if (!state.isEmpty()) {
      count.incrementAndGet();
    }
    state = name;
  }

  private synchronized void tell() {
    if (!closed) {
      long elapsed = System.nanoTime() - startNanos;
      var saying = state.isEmpty() ? task.steps : state;
      show(ProgressBar.bundle(task.doing, count.getOpaque(), steps, saying, elapsed, elapsed));
    }
  }

  private void show(MimeBundle bundle) {
    if (shown) {
      outbox.update(bundle, displayId);
    } else {
      outbox.display(bundle, displayId);
      shown = true;
    }
  }

  /// All is done, and what was shown says so.
  public synchronized void finished() {
    count.set(steps);
    close();
  }

  /// The end, whether all is done or it broke off. Twice is harmless.
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    TOLD.set(toldBefore);
    if (telling != null) {
      telling.cancel(false);
    }
    if (shown) {
      int done = count.get();
      double seconds = (System.nanoTime() - startNanos) / 1e9;
      var line =
          done >= steps
              ? String.format(
                  Locale.ROOT, "%s %d %s in %.1f s", task.done, steps, task.steps, seconds)
              : String.format(
                  Locale.ROOT,
                  "%s ended after %d of %d %s, %.1f s",
                  task.doing,
                  done,
                  steps,
                  task.steps,
                  seconds);
      show(MimeBundle.text(line).asProgress());
    }
  }
}
