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

/// Values as ranks send them to their front. A rank sends evidence as text and JSON only; the front
/// builds tables and charts from it, so that ranks spend neither memory nor time on drawing.
public final class RankValues {
  private RankValues() {}

  /// Returns the form in which a rank sends a value to the front.
  public static MimeBundle bundle(@Nullable Object value) {
    return value instanceof Study<?> study
        ? MimeBundle.text(study.headline()).with(StudyJson.MIME, study.toJson())
        : Renderings.of(value);
  }

  /// Returns the evidence that ranks sent, in any order: the study of any rank, or the profiles of
  /// all. Empty if there is none.
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
