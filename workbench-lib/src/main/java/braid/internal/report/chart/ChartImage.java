package braid.internal.report.chart;

import braid.model.BraidException;
import braid.model.MimeBundle;
import java.awt.Font;
import java.awt.Rectangle;
import java.awt.RenderingHints;
import java.awt.font.FontRenderContext;
import java.awt.image.BufferedImage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import javax.imageio.ImageIO;
import org.jfree.chart.JFreeChart;
import org.jfree.svg.SVGGraphics2D;

/// A chart drawn without a screen, as SVG and as PNG.
public final class ChartImage {
  /// Fonts of equal metrics on every desktop: texts are measured here and drawn by the reader's
  /// browser, and must end where they were measured to end.
  private static final String SVG_FONTS = "Verdana, DejaVu Sans, sans-serif";

  private static final String PLACEHOLDER = "braid-defs-";

  private ChartImage() {}

  public static String svg(JFreeChart chart) {
    return svg(chart, Theme.WIDTH_PX, height(chart));
  }

  /// A plot whose height depends on its content.
  interface Tall {
    int heightPx();
  }

  /// Returns the default height, or the height that the chart's lanes need.
  public static int height(JFreeChart chart) {
    return chart.getPlot() instanceof Tall tall ? tall.heightPx() : Theme.HEIGHT_PX;
  }

  public static String svg(JFreeChart chart, int width, int height) {
    requireFonts();
    var graphics = new SVGGraphics2D(width, height);
    graphics.setDefsKeyPrefix(PLACEHOLDER);
    graphics.setFontFunction(family -> SVG_FONTS);
    graphics.setGeomDoubleConverter(ChartImage::coordinate);
    graphics.setTransformDoubleConverter(ChartImage::coordinate);
    chart.draw(graphics, new Rectangle(width, height));
    var svg = graphics.getSVGElement(null, true, null, null, null);
    // Charts of one page must not share the names of their clips.
    return svg.replace(PLACEHOLDER, "b" + Integer.toHexString(svg.hashCode()) + "-");
  }

  public static byte[] png(JFreeChart chart) {
    return png(chart, Theme.WIDTH_PX, height(chart));
  }

  public static byte[] png(JFreeChart chart, int width, int height) {
    return png(List.of(chart), width, height);
  }

  /// Returns one picture of charts below each other.
  public static byte[] png(Collection<JFreeChart> charts) {
    return png(charts, Theme.WIDTH_PX, charts.stream().mapToInt(ChartImage::height).sum());
  }

  private static byte[] png(Collection<JFreeChart> charts, int width, int height) {
    requireFonts();
    var image = new BufferedImage(width, height, BufferedImage.TYPE_INT_RGB);
    var graphics = image.createGraphics();
    try {
      graphics.setRenderingHint(
          RenderingHints.KEY_TEXT_ANTIALIASING, RenderingHints.VALUE_TEXT_ANTIALIAS_ON);
      graphics.setRenderingHint(
          RenderingHints.KEY_FRACTIONALMETRICS, RenderingHints.VALUE_FRACTIONALMETRICS_ON);
      int top = 0;
      for (var chart : charts) {
        int own = charts.size() == 1 ? height : height(chart);
        chart.draw(graphics, new Rectangle(0, top, width, own));
        top += own;
      }
    } finally {
      graphics.dispose();
    }
    return png(image);
  }

  public static byte[] png(BufferedImage image) {
    var out = new ByteArrayOutputStream();
    try {
      if (!ImageIO.write(image, "png", out)) {
        throw new BraidException("this image's colour model has no PNG form: " + image);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.toByteArray();
  }

  /// Returns the chart for an HTML page, as a separate image, so that the page's styles do not
  /// affect it.
  public static String html(JFreeChart chart) {
    var data = Base64.getEncoder().encodeToString(svg(chart).getBytes(StandardCharsets.UTF_8));
    return "<img style=\"max-width:100%\" alt=\"chart\" src=\"data:image/svg+xml;base64,"
        + data
        + "\">";
  }

  public static MimeBundle bundle(JFreeChart chart) {
    var title = chart.getTitle() == null ? "chart" : chart.getTitle().getText();
    return noFonts()
        .map(reason -> MimeBundle.text(title + "\n(" + reason + ")"))
        .orElseGet(
            () ->
                MimeBundle.text(title)
                    .with(MimeBundle.SVG, svg(chart))
                    .with(MimeBundle.PNG, png(chart)));
  }

  /// Returns why no chart can be drawn, if so. Without fontconfig or any font the JDK cannot
  /// measure text.
  public static Optional<String> noFonts() {
    return Fonts.MISSING;
  }

  private static void requireFonts() {
    noFonts()
        .ifPresent(
            reason -> {
              throw new BraidException(reason);
            });
  }

  private static String coordinate(double value) {
    var text = String.format(Locale.ROOT, "%.2f", value);
    return text.endsWith(".00") ? text.substring(0, text.length() - 3) : text;
  }

  private static final class Fonts {
    static final Optional<String> MISSING = probe();

    private static Optional<String> probe() {
      try {
        new Font(Font.SANS_SERIF, Font.PLAIN, 11)
            .getStringBounds("0", new FontRenderContext(null, true, true));
        return Optional.empty();
      } catch (RuntimeException | LinkageError | InternalError e) {
        return Optional.of(
            "charts need a font but Java found none ("
                + e
                + "); apt-get install fontconfig fonts-dejavu-core");
      }
    }
  }
}
