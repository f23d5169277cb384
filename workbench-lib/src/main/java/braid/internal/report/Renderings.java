package braid.internal.report;

import braid.Displayable;
import braid.Evidence;
import braid.MimeBundle;
import braid.ProfileSet;
import braid.Study;
import braid.internal.report.chart.ChartImage;
import braid.internal.report.json.ProfileJson;
import braid.internal.report.json.ProfileWriter;
import braid.internal.report.json.StudyJson;
import braid.internal.report.value.Values;
import java.awt.image.BufferedImage;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.jfree.chart.JFreeChart;
import org.jspecify.annotations.Nullable;
import tech.tablesaw.api.Table;

/// How any value is shown. A rank shows evidence by its text and its JSON alone; the front makes
/// tables and charts of them, so that ranks need neither memory nor time for drawing.
public final class Renderings {
  private Renderings() {}

  /// The value in every form it has.
  public static MimeBundle of(@Nullable Object value) {
    return of(value, Values.DEFAULT_ELEMENTS);
  }

  /// The same with all its rows or elements, however many.
  public static MimeBundle whole(@Nullable Object value) {
    return of(value, Integer.MAX_VALUE);
  }

  private static MimeBundle of(@Nullable Object value, int rows) {
    if (value instanceof Displayable displayable) {
      return displayable.display();
    }
    // By name, so that showing a number loads neither Tablesaw nor JFreeChart nor AWT.
    if (value != null) {
      for (Class<?> type = value.getClass(); type != null; type = type.getSuperclass()) {
        switch (type.getName()) {
          case "tech.tablesaw.api.Table" -> {
            return Rich.table(value, rows);
          }
          case "org.jfree.chart.JFreeChart" -> {
            return Rich.chart(value);
          }
          case "java.awt.image.BufferedImage" -> {
            return Rich.image(value);
          }
          default -> {}
        }
      }
    }
    return Values.of(value, rows).orElseGet(() -> MimeBundle.text(plain(value)));
  }

  /// The value as a rank hands it to the front.
  public static MimeBundle onRank(@Nullable Object value) {
    return value instanceof Study study
        ? MimeBundle.text(study.headline()).with(StudyJson.MIME, study.toJson())
        : of(value);
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
            .map(bundle -> bundle.data().get(ProfileWriter.MIME))
            .filter(Objects::nonNull)
            .map(ProfileJson::read)
            .toList();
    return profiles.isEmpty() ? Optional.empty() : Optional.of(ProfileSet.of(profiles));
  }

  private static String plain(@Nullable Object value) {
    if (value != null && value.getClass().isArray()) {
      return Values.deep(value);
    }
    return String.valueOf(value);
  }

  /// Everything that mentions a library, in a class of its own, loaded when first needed.
  private static final class Rich {
    private Rich() {}

    static MimeBundle table(Object value, int rows) {
      var table = (Table) value;
      var size = HtmlTable.size(table, rows);
      return MimeBundle.text(HtmlTable.text(table, rows) + "\n" + size)
          .with(
              MimeBundle.HTML,
              HtmlTable.html(table, rows) + "<div style=\"opacity:.7\">" + size + "</div>");
    }

    static MimeBundle chart(Object value) {
      return ChartImage.bundle((JFreeChart) value);
    }

    static MimeBundle image(Object value) {
      var image = (BufferedImage) value;
      return MimeBundle.text("image of " + image.getWidth() + "×" + image.getHeight() + " pixels")
          .with(MimeBundle.PNG, ChartImage.png(image));
    }
  }
}
