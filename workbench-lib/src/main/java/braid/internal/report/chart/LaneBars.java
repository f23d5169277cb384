package braid.internal.report.chart;

import java.awt.Color;
import java.awt.Graphics2D;
import java.awt.geom.Rectangle2D;
import java.util.List;
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

/// Draws each item as a bar from its start to its end in its lane. However short, a bar stays
/// visible; a label is drawn only where its bar has room for it.
final class LaneBars extends AbstractXYItemRenderer {
  private static final double SHORTEST_BAR_PX = 1.5;
  private static final double GAP_PX = 1;
  private static final double NARROWEST_BAR_WITH_GAP_PX = 4;
  private static final double LABEL_MARGIN_PX = 2;

  private final transient List<LanePlot.Kind> kinds;

  LaneBars(List<LanePlot.Kind> kinds) {
    this.kinds = List.copyOf(kinds);
    for (int series = 0; series < kinds.size(); series++) {
      setSeriesPaint(series, kinds.get(series).colour());
    }
    setDefaultLegendShape(Theme.SWATCH);
    setAutoPopulateSeriesShape(false);
    setDefaultShape(Theme.SWATCH);
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
    double gap = to - from >= NARROWEST_BAR_WITH_GAP_PX ? GAP_PX : 0;
    var bar =
        new Rectangle2D.Double(
            from,
            Math.min(top, bottom),
            Math.max(to - from - gap, SHORTEST_BAR_PX),
            Math.abs(bottom - top));
    var kind = kinds.get(series);
    g2.setPaint(kind.colour());
    g2.fill(bar);
    drawLabel(g2, kind.bars().get(item).label(), bar, kind.colour());
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
