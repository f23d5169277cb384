package braid.internal.report;

import static org.assertj.core.api.Assertions.assertThat;

import braid.MimeBundle;
import braid.Overlap;
import braid.ProfileSet;
import braid.Study;
import braid.SyntheticProfiles;
import braid.SyntheticStudy;
import braid.internal.report.json.StudyJson;
import java.awt.image.BufferedImage;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import tech.tablesaw.api.IntColumn;
import tech.tablesaw.api.Table;

class RenderingsTest {
  private static final SyntheticProfiles RUN = new SyntheticProfiles(3, 2, 4, 1, 1000, 3000);

  private static Study study() {
    return new SyntheticStudy(100e6, 0.01, 8, 1).of(List.of(Overlap.splits(4)), _ -> 80e6);
  }

  @Test
  void plainValuesAreTheirText() {
    assertThat(Renderings.of(null).data()).containsExactly(Map.entry("text/plain", "null"));
    assertThat(Renderings.of(42).text()).isEqualTo("42");
    assertThat(Renderings.of(new int[] {1, 2}).text()).isEqualTo("[1, 2]");
    assertThat(Renderings.of(new String[][] {{"a"}, {}}).text()).isEqualTo("[[a], []]");
  }

  @Test
  void tablesChartsAndImagesAreRich() {
    var table = Table.create("t", IntColumn.create("n", new int[] {1}));
    assertThat(Renderings.of(table).data()).containsKeys(MimeBundle.TEXT, MimeBundle.HTML);
    assertThat(Renderings.of(RUN.set().timeline()).data())
        .containsKeys(MimeBundle.TEXT, MimeBundle.SVG, MimeBundle.PNG);
    var image = new BufferedImage(3, 2, BufferedImage.TYPE_INT_RGB);
    assertThat(Renderings.of(image).text()).isEqualTo("image of 3×2 pixels");
    assertThat(Renderings.of(image).data().get(MimeBundle.PNG)).startsWith("iVBOR");
  }

  @Test
  void theFrontGathersTheProfilesOfAllRanks() {
    var ofRanks = List.of(2, 0, 1).stream().map(r -> Renderings.onRank(RUN.profile(r))).toList();

    assertThat(Renderings.evidence(ofRanks)).contains(RUN.set());
    assertThat(RUN.set().display().data())
        .containsKeys(MimeBundle.TEXT, MimeBundle.HTML, MimeBundle.PNG);
  }

  @Test
  void aRankHandsOverAStudyUndrawnAndTheFrontDrawsIt() {
    var study = study();
    var handedOver = Renderings.onRank(study);

    assertThat(handedOver.data()).containsOnlyKeys(MimeBundle.TEXT, StudyJson.MIME);
    assertThat(handedOver.text()).isEqualTo(study.headline());
    assertThat(Renderings.evidence(List.of(MimeBundle.text("1"), handedOver))).contains(study);
    assertThat(study.display().data())
        .containsKeys(MimeBundle.TEXT, MimeBundle.HTML, MimeBundle.PNG, StudyJson.MIME);
  }

  @Test
  void whereThereIsNoEvidenceNoneIsMade() {
    assertThat(Renderings.evidence(List.of(MimeBundle.text("1"), MimeBundle.text("2")))).isEmpty();
    assertThat(Renderings.evidence(List.of())).isEmpty();
    assertThat(ProfileSet.of(List.of(new SyntheticProfiles(1, 1, 1, 1, 0, 1).profile(0))).ranks())
        .isEqualTo(1);
  }
}
