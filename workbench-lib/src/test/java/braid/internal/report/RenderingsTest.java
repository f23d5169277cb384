package braid.internal.report;

import static org.assertj.core.api.Assertions.assertThat;

import braid.evidence.SyntheticProfiles;
import braid.model.MimeBundle;
import java.awt.image.BufferedImage;
import java.util.Map;
import org.junit.jupiter.api.Test;
import tech.tablesaw.api.IntColumn;
import tech.tablesaw.api.Table;

class RenderingsTest {
  private static final SyntheticProfiles RUN = new SyntheticProfiles(3, 2, 4, 1, 1000, 3000);

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
}
