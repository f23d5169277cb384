package braid.internal.report.chart;

import braid.model.Stage;
import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.Font;
import java.awt.Graphics2D;
import java.awt.geom.Line2D;
import java.awt.geom.Rectangle2D;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jfree.chart.JFreeChart;
import org.jfree.chart.axis.ValueAxis;
import org.jfree.chart.block.BlockBorder;
import org.jfree.chart.plot.Plot;
import org.jfree.chart.plot.XYPlot;
import org.jfree.chart.title.LegendTitle;
import org.jfree.chart.title.TextTitle;
import org.jfree.chart.ui.HorizontalAlignment;
import org.jfree.chart.ui.RectangleEdge;
import org.jfree.chart.ui.RectangleInsets;

/// Style of all charts: fits a notebook column, readable at 800 pixels, with a grid lighter than
/// data, and colours that differ for readers with any colour vision. Stages, methods and the
/// reference have one colour each, in every chart.
public final class Theme {
  public static final int WIDTH_PX = 860;
  public static final int HEIGHT_PX = 420;

  static final Color INK = new Color(0x1F2933);
  static final Color QUIET_INK = new Color(0x5B6672);
  static final Color GRID = new Color(0xE3E7EB);
  static final Color BOTH = new Color(0x009E73);
  static final Color BAND = new Color(0xF4F6F8);
  static final Color AXIS = new Color(0x9AA5B1);
  static final Color PAPER = Color.WHITE;
  static final Color REFERENCE = new Color(0x3E4C59);
  static final Color BEST = new Color(0xD55E00);

  /// Outside of a rank's iteration.
  static final Color OUTSIDE = new Color(0xDDE2E7);

  /// Marks of a chart without series.
  static final Color PLAIN = new Color(0x5F7A8C);

  static final Font TITLE = new Font(Font.SANS_SERIF, Font.PLAIN, 15);
  static final Font SUBTITLE = new Font(Font.SANS_SERIF, Font.PLAIN, 12);
  static final Font LABEL = new Font(Font.SANS_SERIF, Font.PLAIN, 12);
  static final Font TICK = new Font(Font.SANS_SERIF, Font.PLAIN, 12);
  static final Font SMALL = new Font(Font.SANS_SERIF, Font.PLAIN, 11);

  static final BasicStroke HAIRLINE = new BasicStroke(1f);
  static final BasicStroke LINE = new BasicStroke(2f);
  static final BasicStroke RING = new BasicStroke(2.5f);
  static final BasicStroke DASHED =
      new BasicStroke(
          1.5f, BasicStroke.CAP_BUTT, BasicStroke.JOIN_MITER, 10f, new float[] {6f, 4f}, 0f);

  /// Width of a letter of [#SMALL], estimated generously.
  static final double SMALL_LETTER_PX = 6.9;

  private static final BasicStroke HALO = new BasicStroke(3.2f);
  private static final BasicStroke INTERVAL = new BasicStroke(1.6f);

  /// Colours of methods.
  private static final Map<String, Color> METHODS =
      Map.of(
          "unfused", REFERENCE,
          "pipelined", new Color(0x332288),
          "direct", new Color(0x44AA99),
          "ring", new Color(0xCC6677),
          "doubling", new Color(0x88CCEE),
          "two-level", new Color(0x999933),
          "bulk", new Color(0xDDCC77));

  /// Colours of other series in the order of use.
  static final List<Color> SERIES =
      List.of(
          new Color(0x882255),
          new Color(0x999933),
          new Color(0x117733),
          new Color(0x56B4E9),
          new Color(0xAA4499),
          new Color(0x332288),
          new Color(0xDDCC77),
          new Color(0x4A5568));

  /// Legend symbol of a colour.
  static final Rectangle2D SWATCH = new Rectangle2D.Double(-6, -5, 12, 10);

  /// Legend symbol of a dashed line.
  static final Line2D DASH = new Line2D.Double(-12, 0, 12, 0);

  /// Space around tick labels, wide so that the axis has few ticks.
  private static final RectangleInsets TICK_SPACE = new RectangleInsets(4, 14, 4, 6);

  private static final double TITLE_GAP_PX = 2;
  private static final double CAP_PX = 4;
  private static final int LONGEST_SUBTITLE_LINES = 4;

  private Theme() {}

  static Color colour(Stage stage) {
    return new Color(stage.rgb());
  }

  /// Returns a colour for each series: a method's own if its name begins with a method, else the
  /// next. A single series of another name is plain.
  static List<Color> seriesColours(List<String> names) {
    var colours = new ArrayList<Color>();
    var used = new HashSet<Color>();
    int next = 0;
    for (var name : names) {
      var own = METHODS.get(name.split("[ ,]", 2)[0]);
      var colour = own;
      if (own == null || !used.add(own)) {
        colour = names.size() == 1 ? PLAIN : SERIES.get(next++ % SERIES.size());
      }
      colours.add(Objects.requireNonNull(colour));
    }
    return colours;
  }

  /// Draws an interval over whatever is below it: dark on a light border, with caps.
  static void interval(Graphics2D g, double from, double to, double across, boolean upright) {
    for (boolean border : new boolean[] {true, false}) {
      g.setPaint(border ? PAPER : INK);
      g.setStroke(border ? HALO : INTERVAL);
      g.draw(line(from, across, to, across, upright));
      g.draw(line(from, across - CAP_PX, from, across + CAP_PX, upright));
      g.draw(line(to, across - CAP_PX, to, across + CAP_PX, upright));
    }
  }

  private static Line2D line(double x1, double y1, double x2, double y2, boolean swapped) {
    return swapped ? new Line2D.Double(y1, x1, y2, x2) : new Line2D.Double(x1, y1, x2, y2);
  }

  /// Returns dark or white ink, whichever is easier to read on `background`.
  static Color inkOn(Color background) {
    double lightness =
        0.299 * background.getRed() + 0.587 * background.getGreen() + 0.114 * background.getBlue();
    return lightness > 140 ? INK : Color.WHITE;
  }

  /// Returns a chart whose title is the finding and whose subtitle is the setting.
  static JFreeChart chart(String title, String subtitle, XYPlot plot) {
    plot.setBackgroundPaint(PAPER);
    plot.setOutlineVisible(false);
    plot.setDomainGridlinePaint(GRID);
    plot.setRangeGridlinePaint(GRID);
    plot.setDomainGridlineStroke(HAIRLINE);
    plot.setRangeGridlineStroke(HAIRLINE);
    plot.setAxisOffset(new RectangleInsets(0, 0, 0, 0));
    style(plot.getDomainAxis());
    style(plot.getRangeAxis());
    return titled(title, subtitle, plot);
  }

  /// A chart of a plot that has its style already.
  static JFreeChart titled(String title, String subtitle, Plot plot) {
    var chart = new JFreeChart(null, TITLE, plot, false);
    chart.setBackgroundPaint(PAPER);
    chart.setPadding(new RectangleInsets(10, 12, 8, 16));
    chart.setTitle(title(title, TITLE, INK, new RectangleInsets(0, 0, TITLE_GAP_PX, 0)));
    if (!subtitle.isEmpty()) {
      var line = title(subtitle, SUBTITLE, QUIET_INK, new RectangleInsets(0, 0, 8, 0));
      line.setMaximumLinesToDisplay(LONGEST_SUBTITLE_LINES);
      chart.addSubtitle(line);
    }
    return chart;
  }

  static void legend(JFreeChart chart) {
    var legend = new LegendTitle(chart.getPlot());
    legend.setPosition(RectangleEdge.BOTTOM);
    legend.setHorizontalAlignment(HorizontalAlignment.LEFT);
    legend.setFrame(BlockBorder.NONE);
    legend.setItemFont(TICK);
    legend.setItemPaint(INK);
    legend.setBackgroundPaint(PAPER);
    legend.setItemLabelPadding(new RectangleInsets(2, 4, 2, 10));
    legend.setMargin(4, 0, 0, 0);
    chart.addLegend(legend);
  }

  static void style(ValueAxis axis) {
    axis.setLabelFont(LABEL);
    axis.setLabelPaint(INK);
    axis.setTickLabelFont(TICK);
    axis.setTickLabelPaint(INK);
    axis.setAxisLinePaint(AXIS);
    axis.setTickMarkPaint(AXIS);
    axis.setTickLabelInsets(TICK_SPACE);
    axis.setLabelInsets(new RectangleInsets(4, 4, 4, 4));
  }

  private static TextTitle title(String text, Font font, Color ink, RectangleInsets padding) {
    var title = new TextTitle(text, font);
    title.setPaint(ink);
    title.setHorizontalAlignment(HorizontalAlignment.LEFT);
    title.setTextAlignment(HorizontalAlignment.LEFT);
    title.setPadding(padding);
    title.setExpandToFitSpace(true);
    return title;
  }
}
