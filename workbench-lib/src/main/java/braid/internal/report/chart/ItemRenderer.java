package braid.internal.report.chart;

import java.awt.Graphics2D;
import java.awt.geom.Rectangle2D;
import org.jfree.chart.axis.ValueAxis;
import org.jfree.chart.plot.CrosshairState;
import org.jfree.chart.plot.PlotRenderingInfo;
import org.jfree.chart.plot.XYPlot;
import org.jfree.chart.renderer.xy.AbstractXYItemRenderer;
import org.jfree.chart.renderer.xy.XYItemRendererState;
import org.jfree.data.xy.XYDataset;

/// Draws the items of a plot at the pixels of their values.
abstract class ItemRenderer extends AbstractXYItemRenderer {
  /// The axes of a plot and the area between them.
  record Axes(XYPlot plot, ValueAxis domain, ValueAxis range, Rectangle2D area) {
    double x(double value) {
      return domain.valueToJava2D(value, area, plot.getDomainAxisEdge());
    }

    double y(double value) {
      return range.valueToJava2D(value, area, plot.getRangeAxisEdge());
    }
  }

  abstract void draw(Graphics2D g2, Axes axes, XYDataset dataset, int series, int item);

  @Override
  public final void drawItem(
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
    draw(g2, new Axes(plot, domainAxis, rangeAxis, dataArea), dataset, series, item);
  }
}
