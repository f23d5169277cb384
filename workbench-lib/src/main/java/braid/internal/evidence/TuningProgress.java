package braid.internal.evidence;

import braid.evidence.Study;
import braid.internal.rank.Outbox;
import braid.internal.report.json.StudyJson;
import braid.internal.report.progress.Progress;
import braid.internal.report.progress.ProgressBar;
import braid.model.MimeBundle;
import java.util.concurrent.Future;

/// Shows the tuner's progress in one display that rank 0 updates: each configuration is verified,
/// then each is measured several times. At the end, publishes the study to the front, which keeps
/// it.
public final class TuningProgress implements AutoCloseable {
  private final Outbox outbox;
  private final String displayId;
  private final int configurations;
  private final ProgressBar bar;
  private final Future<?> ticks;
  private boolean shown;
  private int notes;

  /// @param configurations number of configurations to build, including the unfused reference
  /// @param measurements minimum number of measurements
  public TuningProgress(Outbox outbox, String displayId, int configurations, int measurements) {
    this.outbox = outbox;
    this.displayId = displayId;
    this.configurations = configurations;
    this.bar =
        new ProgressBar(
            "tuning",
            configurations + measurements,
            "building and verifying " + configurations + " configurations",
            System::nanoTime,
            this::show);
    this.ticks = Progress.everySecond(bar::tick);
  }

  /// Shows a line beside the progress.
  public void note(String line) {
    notes++;
    outbox.display(MimeBundle.text(line).asProgress(), displayId + "-note-" + notes);
  }

  public void verifying(String configuration) {
    bar.step("verifying " + configuration);
  }

  public void measuring(String configuration) {
    bar.step(configuration);
  }

  /// Updates the expected total number of measurements.
  public void expecting(int measurements) {
    bar.expect(configurations + measurements);
  }

  public void found(Study<?> study) {
    bar.finish("done after " + study.repeats() + " rounds");
    outbox.publish(MimeBundle.text(study.headline()).with(StudyJson.MIME, study.toJson()));
  }

  private void show(MimeBundle bundle) {
    if (shown) {
      outbox.update(bundle, displayId);
    } else {
      outbox.display(bundle, displayId);
      shown = true;
    }
  }

  /// Ends the updates; the display stays.
  @Override
  public void close() {
    ticks.cancel(false);
  }
}
