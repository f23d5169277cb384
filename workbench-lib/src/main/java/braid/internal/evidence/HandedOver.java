package braid.internal.evidence;

import braid.evidence.Evidence;
import braid.evidence.ProfileSet;
import braid.evidence.Study;
import braid.internal.report.Renderings;
import braid.internal.report.json.ProfileJson;
import braid.internal.report.json.StudyJson;
import braid.model.MimeBundle;
import braid.model.Profile;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// What ranks hand over to their front. A rank shows evidence by its text and its JSON alone; the
/// front makes tables and charts of them, so that ranks need neither memory nor time for drawing.
public final class HandedOver {
  private HandedOver() {}

  /// The value as a rank hands it to the front.
  public static MimeBundle onRank(@Nullable Object value) {
    return value instanceof Study study
        ? MimeBundle.text(study.headline()).with(StudyJson.MIME, study.toJson())
        : Renderings.of(value);
  }

  /// The evidence in what ranks handed over, in any order: the study that any of them sent, or the
  /// profiles of all. Empty where there is none of it.
  public static Optional<Evidence> evidence(List<MimeBundle> ofRanks) {
    for (var bundle : ofRanks) {
      var study = bundle.data().get(StudyJson.MIME);
      if (study != null) {
        return Optional.of(Study.fromJson(study));
      }
    }
    var profiles =
        ofRanks.stream()
            .map(bundle -> bundle.data().get(Profile.MIME))
            .filter(Objects::nonNull)
            .map(ProfileJson::read)
            .toList();
    return profiles.isEmpty() ? Optional.empty() : Optional.of(ProfileSet.of(profiles));
  }
}
