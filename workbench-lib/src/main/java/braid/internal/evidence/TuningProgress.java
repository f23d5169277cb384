package braid.internal.evidence;

import braid.evidence.Study;
import braid.internal.rank.Outbox;
import braid.internal.report.json.StudyJson;
import braid.internal.report.progress.ProgressBar;
import braid.model.MimeBundle;

/// Progress of the tuner, shown by rank 0 in one display that is updated, and at the end the study,
/// for the front to keep.
public final class TuningProgress {
  private final Outbox outbox;
  private final String displayId;
  private final int configurations;
  private final ProgressBar bar;
  private boolean shown;

  /// @param configurations number of configurations to build, including the unfused reference
  /// @param measurements minimum number of measurements
  public TuningProgress(Outbox outbox, String displayId, int configurations, int measurements) {
    this.outbox = outbox;
    this.displayId = displayId;
    this.configurations = configurations;
    this.bar =
        new ProgressBar(
            "tuning",
            measurements,
            "building and verifying " + configurations + " configurations",
            System::nanoTime,
            this::show);
  }

  /// @param done number of configurations verified so far
  public void verifying(int done) {
    bar.prepare("verified %d of %d configurations".formatted(done, configurations));
  }

  public void measuring(String configuration) {
    bar.step(configuration);
  }

  /// Sets the total number of measurements, as far as known now.
  public void expecting(int measurements) {
    bar.expect(measurements);
  }

  public void found(Study study) {
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
}
