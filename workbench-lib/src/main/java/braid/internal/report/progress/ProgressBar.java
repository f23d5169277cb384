package braid.internal.report.progress;

import braid.internal.report.HtmlTable;
import braid.model.MimeBundle;
import java.util.Locale;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/// How far long work has come, shown in place and not more often than an eye can follow: a bar in a
/// notebook, a line of text elsewhere.
public final class ProgressBar {
  private static final long SHORTEST_PAUSE_NANOS = 100_000_000;
  private static final int TEXT_BAR_WIDTH = 24;
  private static final int HTML_BAR_WIDTH_PX = 260;

  private final String work;
  private int steps;
  private final LongSupplier nanoClock;
  private final Consumer<MimeBundle> show;
  private final long startedNanos;
  private long firstStepNanos;
  private long shownNanos;
  private int done;

  /// @param preparing what goes on before the first step
  /// @param show is called with what is to stand there from now on, the first time at once
  public ProgressBar(
      String work, int steps, String preparing, LongSupplier nanoClock, Consumer<MimeBundle> show) {
    this.work = work;
    this.steps = steps;
    this.nanoClock = nanoClock;
    this.show = show;
    this.startedNanos = nanoClock.getAsLong();
    this.shownNanos = startedNanos;
    show.accept(bundle(preparing, startedNanos));
  }

  /// What goes on before the first step.
  public void prepare(String state) {
    long now = nanoClock.getAsLong();
    if (now - shownNanos >= SHORTEST_PAUSE_NANOS) {
      shownNanos = now;
      show.accept(bundle(state, now));
    }
  }

  /// One step is beginning; those before it are done.
  public void step(String name) {
    long now = nanoClock.getAsLong();
    if (done == 0) {
      firstStepNanos = now;
    }
    if (now - shownNanos >= SHORTEST_PAUSE_NANOS) {
      shownNanos = now;
      show.accept(bundle(name, now));
    }
    done = Math.min(done + 1, steps);
  }

  /// There will be so many steps in all, as far as known now; those that are done stay done.
  public void expect(int stepsInAll) {
    steps = Math.max(done, stepsInAll);
  }

  /// All is done; shown whatever was shown before.
  public void finish(String outcome) {
    done = steps;
    show.accept(bundle(outcome, nanoClock.getAsLong()));
  }

  private MimeBundle bundle(String state, long now) {
    return bundle(work, done, steps, state, now - startedNanos, now - firstStepNanos);
  }

  /// @param stepsNanos for how long there have been steps, from which what is left is guessed
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
