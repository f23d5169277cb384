package braid.internal.evidence;

import static org.assertj.core.api.Assertions.assertThat;

import braid.evidence.ProfileSet;
import braid.evidence.Study;
import braid.evidence.SyntheticProfiles;
import braid.evidence.SyntheticStudy;
import braid.internal.report.json.StudyJson;
import braid.model.MimeBundle;
import braid.model.Overlap;
import java.util.List;
import org.junit.jupiter.api.Test;

class RankValuesTest {
  private static final SyntheticProfiles RUN = new SyntheticProfiles(3, 2, 4, 1, 1000, 3000);

  private static Study<Overlap> study() {
    return new SyntheticStudy(100e6, 0.01, 8, 1).of(List.of(Overlap.pipelined(4)), _ -> 80e6);
  }

  @Test
  void theFrontGathersTheProfilesOfAllRanks() {
    var ofRanks = List.of(2, 0, 1).stream().map(r -> RankValues.bundle(RUN.profile(r))).toList();

    assertThat(RankValues.evidence(ofRanks)).contains(RUN.set());
    assertThat(RUN.set().display().data())
        .containsKeys(MimeBundle.TEXT, MimeBundle.HTML, MimeBundle.PNG);
  }

  @Test
  void aRankHandsOverAStudyUndrawnAndTheFrontDrawsIt() {
    var study = study();
    var sent = RankValues.bundle(study);

    assertThat(sent.data()).containsOnlyKeys(MimeBundle.TEXT, StudyJson.MIME);
    assertThat(sent.text()).isEqualTo(study.headline());
    assertThat(RankValues.evidence(List.of(MimeBundle.text("1"), sent))).contains(study);
    assertThat(study.display().data())
        .containsKeys(MimeBundle.TEXT, MimeBundle.HTML, MimeBundle.PNG, StudyJson.MIME);
  }

  @Test
  void whereThereIsNoEvidenceNoneIsMade() {
    assertThat(RankValues.evidence(List.of(MimeBundle.text("1"), MimeBundle.text("2")))).isEmpty();
    assertThat(RankValues.evidence(List.of())).isEmpty();
    assertThat(ProfileSet.of(List.of(new SyntheticProfiles(1, 1, 1, 1, 0, 1).profile(0))).ranks())
        .isEqualTo(1);
  }
}
