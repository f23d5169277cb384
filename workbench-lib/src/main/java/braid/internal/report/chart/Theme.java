package braid.internal.report.chart;

import braid.model.Stage;
import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.Font;
import java.awt.geom.Line2D;
import java.awt.geom.Rectangle2D;
import java.util.List;
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

/// Style of all charts: fits a notebook column, with a grid lighter than data, and colours that
/// differ in hue and lightness, for readers with any colour vision.
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
  static final Color REFERENCE_BAND = new Color(0xEDF0F3);
  static final Color BEST = new Color(0xD1495B);

  static final Font TITLE = new Font(Font.SANS_SERIF, Font.BOLD, 15);
  static final Font SUBTITLE = new Font(Font.SANS_SERIF, Font.PLAIN, 11);
  static final Font LABEL = new Font(Font.SANS_SERIF, Font.PLAIN, 12);
  static final Font TICK = new Font(Font.SANS_SERIF, Font.PLAIN, 11);
  static final Font SMALL = new Font(Font.SANS_SERIF, Font.PLAIN, 9);

  static final BasicStroke HAIRLINE = new BasicStroke(1f);
  static final BasicStroke LINE = new BasicStroke(2f);
  static final BasicStroke RING = new BasicStroke(2.5f);
  static final BasicStroke DASHED =
      new BasicStroke(
          1.5f, BasicStroke.CAP_BUTT, BasicStroke.JOIN_MITER, 10f, new float[] {6f, 4f}, 0f);

  /// Series colours in the order of use.
  static final List<Color> SERIES =
      List.of(
          new Color(0x0072B2),
          new Color(0xE69F00),
          new Color(0x009E73),
          new Color(0xCC79A7),
          new Color(0x56B4E9),
          new Color(0xD55E00),
          new Color(0x6A4C93),
          new Color(0x4A5568));

  /// Legend symbol of a colour.
  static final Rectangle2D SWATCH = new Rectangle2D.Double(-6, -5, 12, 10);

  /// Legend symbol of a dashed line.
  static final Line2D DASH = new Line2D.Double(-12, 0, 12, 0);

  /// Space around tick labels, wide so that the axis has few ticks.
  private static final RectangleInsets TICK_SPACE = new RectangleInsets(4, 14, 4, 6);

  private static final double TITLE_GAP_PX = 2;
  private static final int LONGEST_SUBTITLE_LINES = 3;

  private Theme() {}

  static Color colour(Stage stage) {
    return new Color(stage.rgb());
  }

  static Color seriesColour(int index) {
    return SERIES.get(index % SERIES.size());
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
