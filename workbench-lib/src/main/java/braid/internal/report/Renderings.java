package braid.internal.report;

import braid.Displayable;
import braid.MimeBundle;
import braid.internal.report.chart.ChartImage;
import java.awt.image.BufferedImage;
import java.util.Arrays;
import org.jfree.chart.JFreeChart;
import org.jspecify.annotations.Nullable;
import tech.tablesaw.api.Table;

/// How any value is shown.
public final class Renderings {
  private Renderings() {}

  /// The value in every form it has.
  public static MimeBundle of(@Nullable Object value) {
    if (value instanceof Displayable displayable) {
      return displayable.display();
    }
    // By name, so that showing a number loads neither Tablesaw nor JFreeChart nor AWT.
    if (value != null) {
      for (Class<?> type = value.getClass(); type != null; type = type.getSuperclass()) {
        switch (type.getName()) {
          case "tech.tablesaw.api.Table" -> {
            return Rich.table(value);
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
    return MimeBundle.text(plain(value));
  }

  private static String plain(@Nullable Object value) {
    if (value != null && value.getClass().isArray()) {
      var wrapped = Arrays.deepToString(new @Nullable Object[] {value});
      return wrapped.substring(1, wrapped.length() - 1);
    }
    return String.valueOf(value);
  }

  /// Everything that mentions a library, in a class of its own, loaded when first needed.
  private static final class Rich {
    private Rich() {}

    static MimeBundle table(Object value) {
      var table = (Table) value;
      return MimeBundle.text(HtmlTable.text(table, HtmlTable.DEFAULT_ROWS))
          .with(MimeBundle.HTML, HtmlTable.html(table, HtmlTable.DEFAULT_ROWS));
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
