package braid.internal.report.chart;

import java.awt.Color;
import java.awt.Graphics2D;
import java.awt.Shape;
import java.awt.geom.Path2D;
import java.awt.geom.Rectangle2D;
import java.util.List;
import org.jfree.chart.LegendItem;
import org.jfree.chart.axis.ValueAxis;
import org.jfree.chart.plot.CrosshairState;
import org.jfree.chart.plot.PlotRenderingInfo;
import org.jfree.chart.plot.XYPlot;
import org.jfree.chart.renderer.xy.AbstractXYItemRenderer;
import org.jfree.chart.renderer.xy.XYItemRendererState;
import org.jfree.chart.text.TextUtils;
import org.jfree.chart.ui.TextAnchor;
import org.jfree.data.xy.IntervalXYDataset;
import org.jfree.data.xy.XYDataset;

/// Draws each bar in its lane, from its start to its end, in the form of its group: block, thread
/// or tick. Bars have a minimum width; a label is drawn only if it fits into its bar.
final class LaneBars extends AbstractXYItemRenderer {
  private static final double SHORTEST_BAR_PX = 1.5;
  private static final double GAP_PX = 1;
  private static final double NARROWEST_BAR_WITH_GAP_PX = 4;
  private static final double LABEL_MARGIN_PX = 2;
  private static final double THREAD_PX = 3;
  private static final double TICK_PX = 1.2;
  private static final double TICK_HEAD_PX = 2.5;
  private static final double TICK_ABOVE_PX = 1;

  private static final double SWATCH_TICK_PX = 12;
  private static final Rectangle2D THREAD_SWATCH = new Rectangle2D.Double(-6, -1.5, 12, 3);

  private final transient List<LanePlot.BarGroup> groups;

  LaneBars(List<LanePlot.BarGroup> groups) {
    this.groups = List.copyOf(groups);
    for (int series = 0; series < groups.size(); series++) {
      setSeriesPaint(series, groups.get(series).colour());
    }
  }

  /// Returns a legend entry with the group's form and colour, as in the plot.
  @Override
  public LegendItem getLegendItem(int datasetIndex, int series) {
    var group = groups.get(series);
    Shape shape =
        switch (group.form()) {
          case BLOCK -> Theme.SWATCH;
          case THREAD -> THREAD_SWATCH;
          case TICK -> tick(0, -SWATCH_TICK_PX / 2, SWATCH_TICK_PX / 2);
        };
    return new LegendItem(group.name(), null, null, null, shape, group.colour());
  }

  @Override
  public void drawItem(
      Graphics2D g2,
      XYItemRendererState state,
      Rectangle2D dataArea,
      PlotRenderingInfo info,
      XYPlot plot,
      ValueAxis domainAxis,
      ValueAxis rangeAxis,
      XYDataset dataset,
      int series,
      int item,
      CrosshairState crosshairState,
      int pass) {
    var bars = (IntervalXYDataset) dataset;
    var along = plot.getDomainAxisEdge();
    var across = plot.getRangeAxisEdge();
    double from = domainAxis.valueToJava2D(bars.getStartXValue(series, item), dataArea, along);
    double to = domainAxis.valueToJava2D(bars.getEndXValue(series, item), dataArea, along);
    double top = rangeAxis.valueToJava2D(bars.getStartYValue(series, item), dataArea, across);
    double bottom = rangeAxis.valueToJava2D(bars.getEndYValue(series, item), dataArea, across);
    var group = groups.get(series);
    double middle = (top + bottom) / 2;
    double height = Math.abs(bottom - top);
    g2.setPaint(group.colour());
    switch (group.form()) {
      case BLOCK -> {
        double gap = to - from >= NARROWEST_BAR_WITH_GAP_PX ? GAP_PX : 0;
        double width = Math.max(to - from - gap, SHORTEST_BAR_PX);
        var bar = new Rectangle2D.Double(from, middle - height / 2, width, height);
        g2.fill(bar);
        drawLabel(g2, group.bars().get(item).label(), bar, group.colour());
      }
      case THREAD ->
          g2.fill(
              new Rectangle2D.Double(
                  from, middle - THREAD_PX / 2, Math.max(to - from, SHORTEST_BAR_PX), THREAD_PX));
      case TICK -> g2.fill(tick(from, middle - height / 2 - TICK_ABOVE_PX, middle + height / 2));
    }
  }

  /// Returns a pin: a thin line with a wider head above the bar, which stays visible if the bar has
  /// a similar brightness.
  private static Path2D tick(double x, double top, double bottom) {
    var pin = new Path2D.Double();
    pin.moveTo(x - TICK_HEAD_PX, top);
    pin.lineTo(x + TICK_HEAD_PX, top);
    pin.lineTo(x + TICK_PX / 2, top + 2 * TICK_HEAD_PX);
    pin.lineTo(x + TICK_PX / 2, bottom);
    pin.lineTo(x - TICK_PX / 2, bottom);
    pin.lineTo(x - TICK_PX / 2, top + 2 * TICK_HEAD_PX);
    pin.closePath();
    return pin;
  }

  private static void drawLabel(Graphics2D g2, String label, Rectangle2D bar, Color background) {
    if (label.isEmpty()) {
      return;
    }
    var metrics = g2.getFontMetrics(Theme.SMALL);
    if (metrics.stringWidth(label) + 2 * LABEL_MARGIN_PX > bar.getWidth()
        || metrics.getAscent() > bar.getHeight()) {
      return;
    }
    g2.setFont(Theme.SMALL);
    g2.setPaint(Theme.inkOn(background));
    TextUtils.drawAlignedString(
        label, g2, (float) bar.getCenterX(), (float) bar.getCenterY(), TextAnchor.CENTER);
  }
}
