package braid.internal.evidence;

import braid.evidence.Study;
import braid.internal.rank.Outbox;
import braid.internal.report.json.StudyJson;
import braid.internal.report.progress.ProgressBar;
import braid.model.MimeBundle;

/// What the rank that speaks for all tells while the tuner works: how far it is, in one place that
/// is updated, and in the end the study, for the front to keep.
public final class TuningNews {
  private final Outbox outbox;
  private final String displayId;
  private final int configurations;
  private final ProgressBar bar;
  private boolean shown;

  /// @param configurations how many are built, the unfused reference among them
  /// @param measurements how many will be made at least
  public TuningNews(Outbox outbox, String displayId, int configurations, int measurements) {
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

  /// @param done how many configurations are verified already
  public void verifying(int done) {
    bar.prepare("verified %d of %d configurations".formatted(done, configurations));
  }

  public void measuring(String configuration) {
    bar.step(configuration);
  }

  /// So many measurements will be made in all, as far as known now.
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
