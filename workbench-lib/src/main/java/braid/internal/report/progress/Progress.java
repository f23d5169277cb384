package braid.internal.report.progress;

import braid.internal.rank.Outbox;
import braid.model.MimeBundle;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Progress of long work, shown once it has taken longer than [#PATIENCE]. A separate thread reads
/// the count and reports it: the work itself only writes one counter, so that measurements are not
/// disturbed and no rank waits for the reporting one.
public final class Progress implements AutoCloseable {
  /// Time before progress is shown; shorter work shows none.
  public static final Duration PATIENCE = Duration.ofMillis(500);

  private static final Duration PAUSE = Duration.ofMillis(250);

  private static final ScheduledExecutorService REPORTER =
      Executors.newSingleThreadScheduledExecutor(
          Thread.ofPlatform()
              .daemon()
              .inheritInheritableThreadLocals(false)
              .name("braid-progress")
              .factory());

  /// True if work of this thread already reports progress: its parts then do not.
  private static final ThreadLocal<Boolean> REPORTED = ThreadLocal.withInitial(() -> false);

  /// Words for a task.
  ///
  /// @param doing word while it runs: `profiling`
  /// @param done word when it is complete: `profiled`
  /// @param steps name of the counted steps: `iterations`
  public record Task(String doing, String done, String steps) {}

  private final Task task;
  private final int steps;
  private final Consumer<MimeBundle> display;
  private final long startNanos = System.nanoTime();
  private final AtomicInteger count = new AtomicInteger();
  private volatile String state = "";
  private String outcome = "";
  private @Nullable ScheduledFuture<?> reporting;
  private boolean shown;
  private boolean closed;

  private final boolean reportedBefore = REPORTED.get();

  private Progress(Task task, int steps, Outbox outbox) {
    this.task = task;
    this.steps = steps;
    display = ProgressBar.inPlace(outbox);
  }

  /// Starts progress, to be closed by the calling thread.
  ///
  /// @param reports true on the one rank that reports for all
  public static Progress of(Task task, int steps, Outbox outbox, boolean reports) {
    var progress = new Progress(task, steps, outbox);
    if (reports && !progress.reportedBefore && !outbox.equals(Outbox.CONSOLE)) {
      progress.reporting =
          REPORTER.scheduleWithFixedDelay(
              progress::report, PATIENCE.toMillis(), PAUSE.toMillis(), TimeUnit.MILLISECONDS);
    }
    REPORTED.set(true);
    return progress;
  }

  /// Runs a task every second, on the thread that reports all progress, until it is cancelled.
  static ScheduledFuture<?> everySecond(Runnable task) {
    return REPORTER.scheduleWithFixedDelay(task, 1, 1, TimeUnit.SECONDS);
  }

  /// Returns progress for work that reports it elsewhere.
  public static Progress reportedElsewhere() {
    return of(new Task("", "", ""), 0, Outbox.CONSOLE, false);
  }

  /// Sets the number of steps done.
  public void done(int steps) {
    count.setOpaque(steps);
  }

  /// Names the current step; the previous one is done.
  public void step(String name) {
    if (!state.isEmpty()) {
      count.incrementAndGet();
    }
    state = name;
  }

  private synchronized void report() {
    if (!closed) {
      long elapsed = System.nanoTime() - startNanos;
      var current = state.isEmpty() ? task.steps : state;
      int done = count.getOpaque();
      show(ProgressBar.bundle(task.doing, done, steps, current, elapsed, done, elapsed));
    }
  }

  private void show(MimeBundle bundle) {
    shown = true;
    display.accept(bundle);
  }

  /// Ends the work as complete.
  ///
  /// @param result what it found, for the last line
  public synchronized void finished(String result) {
    count.set(steps);
    outcome = result;
    close();
  }

  /// Ends the work, complete or not. Closing twice is harmless.
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    REPORTED.set(reportedBefore);
    if (reporting != null) {
      reporting.cancel(false);
    }
    if (shown) {
      int done = count.get();
      double seconds = (System.nanoTime() - startNanos) / 1e9;
      var line =
          !outcome.isEmpty()
              ? String.format(Locale.ROOT, "%s in %.1f s", outcome, seconds)
              : done >= steps
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
