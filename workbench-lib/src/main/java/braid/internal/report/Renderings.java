package braid.internal.report;

import braid.internal.report.chart.ChartImage;
import braid.internal.report.value.Values;
import braid.model.Displayable;
import braid.model.MimeBundle;
import java.awt.image.BufferedImage;
import org.jfree.chart.JFreeChart;
import org.jspecify.annotations.Nullable;
import tech.tablesaw.api.Table;

/// Renders any value.
public final class Renderings {
  private Renderings() {}

  /// Returns the value in all its forms.
  public static MimeBundle of(@Nullable Object value) {
    return of(value, Values.DEFAULT_ELEMENTS);
  }

  /// Returns the value with all its rows or elements.
  public static MimeBundle whole(@Nullable Object value) {
    return of(value, Integer.MAX_VALUE);
  }

  private static MimeBundle of(@Nullable Object value, int rows) {
    if (value instanceof Displayable displayable) {
      return displayable.display();
    }
    if (value instanceof MimeBundle bundle) {
      return bundle;
    }
    // Compared by name, so that showing a number loads neither Tablesaw nor JFreeChart nor AWT.
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

  private static String plain(@Nullable Object value) {
    if (value != null && value.getClass().isArray()) {
      return Values.deep(value);
    }
    return String.valueOf(value);
  }

  /// Code that uses libraries, in a separate class that is loaded when first needed.
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
