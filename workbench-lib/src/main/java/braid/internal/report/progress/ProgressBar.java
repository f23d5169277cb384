package braid.internal.report.progress;

import braid.internal.rank.Outbox;
import braid.internal.report.HtmlTable;
import braid.model.MimeBundle;
import java.util.Collection;
import java.util.Iterator;
import java.util.Locale;
import java.util.UUID;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// Progress of long work, shown in place and not more often than the eye can follow: a bar in a
/// notebook, a line of text elsewhere.
public final class ProgressBar implements AutoCloseable {
  private static final long SHORTEST_PAUSE_NANOS = 100_000_000;

  /// Time after which an unchanged display shows its elapsed time anew.
  private static final long LONGEST_PAUSE_NANOS = 1_000_000_000;

  private static final int TEXT_BAR_WIDTH = 24;
  private static final int HTML_BAR_WIDTH_PX = 260;
  private static final int MAX_ITEM_CHARS = 60;

  private final String work;
  private int steps;
  private int unpaced;
  private final LongSupplier nanoClock;
  private final Consumer<MimeBundle> show;
  private final long startedNanos;
  private long paceNanos;
  private long shownNanos;
  private int begun;
  private int done;
  private String state;
  private String warning = "";
  private boolean finished;
  private @Nullable Future<?> ticks;

  public ProgressBar(String work, int steps, String preparing, Outbox outbox) {
    this(work, steps, preparing, System::nanoTime, inPlace(outbox));
  }

  /// @param preparing description of the work before the first step
  /// @param show called with each new display, the first time at once
  public ProgressBar(
      String work, int steps, String preparing, LongSupplier nanoClock, Consumer<MimeBundle> show) {
    this.work = work;
    this.steps = steps;
    this.nanoClock = nanoClock;
    this.show = show;
    this.startedNanos = nanoClock.getAsLong();
    this.shownNanos = startedNanos;
    this.state = preparing;
    show.accept(bundle(preparing, startedNanos));
  }

  /// Returns a receiver of bundles, each of which replaces the one before.
  static Consumer<MimeBundle> inPlace(Outbox outbox) {
    // Without a session a shown line cannot be replaced, and every update would add one.
    if (outbox.equals(Outbox.CONSOLE)) {
      return _ -> {};
    }
    var displayId = "progress-" + UUID.randomUUID();
    var shown = new AtomicBoolean();
    return bundle -> {
      if (shown.getAndSet(true)) {
        outbox.update(bundle, displayId);
      } else {
        outbox.display(bundle, displayId);
      }
    };
  }

  /// Returns the items of a loop whose progress is shown in one display. A loop that ends early
  /// leaves the display as it is.
  ///
  /// @param work name of the items: `shapes`
  public static <T> Iterator<T> loop(Collection<T> items, String work, Outbox outbox) {
    var left = items.iterator();
    var bar = new ProgressBar(work, items.size(), "starting", outbox);
    return new Iterator<>() {
      @Override
      public boolean hasNext() {
        if (!left.hasNext()) {
          bar.finish("done");
        }
        return left.hasNext();
      }

      @Override
      public T next() {
        var item = left.next();
        var line = String.valueOf(item).lines().findFirst().orElse("");
        bar.step(
            line.length() > MAX_ITEM_CHARS ? line.substring(0, MAX_ITEM_CHARS - 1) + "…" : line);
        return item;
      }
    };
  }

  /// Shows the elapsed time of long steps, until it is closed.
  public ProgressBar ticking() {
    ticks = Progress.everySecond(this::tick);
    return this;
  }

  /// Estimates the remaining time from later steps only, whose duration the first steps do not
  /// show.
  public ProgressBar pacedAfter(int firstSteps) {
    unpaced = firstSteps;
    return this;
  }

  /// Ends the updates; the display stays.
  @Override
  public void close() {
    if (ticks != null) {
      ticks.cancel(false);
    }
  }

  /// Begins a step; earlier ones are done.
  public synchronized void step(String name) {
    long now = nanoClock.getAsLong();
    if (begun == unpaced) {
      paceNanos = now;
    }
    done = Math.min(begun, steps);
    begun++;
    state = name;
    showAfter(SHORTEST_PAUSE_NANOS, now);
  }

  private synchronized void tick() {
    if (!finished) {
      showAfter(LONGEST_PAUSE_NANOS, nanoClock.getAsLong());
    }
  }

  private void showAfter(long pauseNanos, long now) {
    if (now - shownNanos >= pauseNanos) {
      shownNanos = now;
      show.accept(bundle(state + warning, now));
    }
  }

  /// Shows a line behind the state of each step, until the end.
  public synchronized void warn(String line) {
    warning = " · " + line;
  }

  /// Sets the total number of steps, as far as known now; it never falls below those done.
  public synchronized void expect(int stepsInAll) {
    steps = Math.max(done, stepsInAll);
  }

  /// Ends the work as complete; always shown, once.
  public synchronized void finish(String outcome) {
    if (!finished) {
      finished = true;
      done = steps;
      show.accept(bundle(outcome, nanoClock.getAsLong()));
    }
  }

  private MimeBundle bundle(String state, long now) {
    return bundle(work, done, steps, state, now - startedNanos, done - unpaced, now - paceNanos);
  }

  /// @param paced number of steps from which the remaining time is estimated
  /// @param pacedNanos their time
  static MimeBundle bundle(
      String work,
      int done,
      int steps,
      String state,
      long elapsedNanos,
      int paced,
      long pacedNanos) {
    double share = steps == 0 ? 1 : (double) done / steps;
    var time = String.format(Locale.ROOT, "%.1f s", elapsedNanos / 1e9);
    if (paced > 0 && done < steps) {
      double leftSeconds = pacedNanos / 1e9 * (steps - done) / paced;
      time += String.format(Locale.ROOT, ", about %.0f s left", leftSeconds);
    }
    int filled = (int) Math.round(share * TEXT_BAR_WIDTH);
    var line = "%s %d/%d · %s · %s".formatted(work, done, steps, state, time);
    var text = "[" + "█".repeat(filled) + "·".repeat(TEXT_BAR_WIDTH - filled) + "] " + line;
    var html =
        "<div><progress style=\"width:%dpx;vertical-align:middle\" max=\"%d\" value=\"%d\"></progress> %s</div>"
            .formatted(HTML_BAR_WIDTH_PX, steps, done, HtmlTable.escape(line));
    return MimeBundle.text(text).with(MimeBundle.HTML, html).asProgress();
  }
}
