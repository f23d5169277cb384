package braid.internal.report.progress;

import braid.internal.report.HtmlTable;
import braid.model.MimeBundle;
import java.util.Locale;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/// Progress of long work, shown in place and not more often than the eye can follow: a bar in a
/// notebook, a line of text elsewhere.
public final class ProgressBar {
  private static final long SHORTEST_PAUSE_NANOS = 100_000_000;

  /// Time after which an unchanged display shows its elapsed time anew.
  private static final long LONGEST_PAUSE_NANOS = 1_000_000_000;

  private static final int TEXT_BAR_WIDTH = 24;
  private static final int HTML_BAR_WIDTH_PX = 260;

  private final String work;
  private int steps;
  private final LongSupplier nanoClock;
  private final Consumer<MimeBundle> show;
  private final long startedNanos;
  private long firstStepNanos;
  private long shownNanos;
  private int begun;
  private int done;
  private String state;
  private boolean finished;

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

  /// Begins a step; earlier ones are done.
  public synchronized void step(String name) {
    long now = nanoClock.getAsLong();
    if (begun == 0) {
      firstStepNanos = now;
    }
    done = Math.min(begun, steps);
    begun++;
    state = name;
    showAfter(SHORTEST_PAUSE_NANOS, now);
  }

  /// Shows the elapsed time of a long step. Called at intervals by another thread.
  public synchronized void tick() {
    if (!finished) {
      showAfter(LONGEST_PAUSE_NANOS, nanoClock.getAsLong());
    }
  }

  private void showAfter(long pauseNanos, long now) {
    if (now - shownNanos >= pauseNanos) {
      shownNanos = now;
      show.accept(bundle(state, now));
    }
  }

  /// Sets the total number of steps, as far as known now; it never falls below those done.
  public synchronized void expect(int stepsInAll) {
    steps = Math.max(done, stepsInAll);
  }

  /// Ends the work as complete; always shown.
  public synchronized void finish(String outcome) {
    finished = true;
    done = steps;
    show.accept(bundle(outcome, nanoClock.getAsLong()));
  }

  private MimeBundle bundle(String state, long now) {
    return bundle(work, done, steps, state, now - startedNanos, now - firstStepNanos);
  }

  /// @param stepsNanos time since the first step, from which the remaining time is estimated
  public static MimeBundle bundle(
      String work, int done, int steps, String state, long elapsedNanos, long stepsNanos) {
    double share = steps == 0 ? 1 : (double) done / steps;
    var time = String.format(Locale.ROOT, "%.1f s", elapsedNanos / 1e9);
    if (done > 0 && done < steps) {
      double leftSeconds = stepsNanos / 1e9 * (steps - done) / done;
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
