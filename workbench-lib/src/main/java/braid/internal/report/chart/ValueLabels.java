package braid.internal.report.chart;

import java.awt.Color;
import java.awt.Graphics2D;
import java.awt.geom.Rectangle2D;
import java.util.ArrayList;
import java.util.List;
import org.jfree.chart.axis.ValueAxis;
import org.jfree.chart.plot.CrosshairState;
import org.jfree.chart.plot.PlotRenderingInfo;
import org.jfree.chart.plot.XYPlot;
import org.jfree.chart.renderer.xy.AbstractXYItemRenderer;
import org.jfree.chart.renderer.xy.XYItemRendererState;
import org.jfree.chart.text.TextUtils;
import org.jfree.chart.ui.TextAnchor;
import org.jfree.data.xy.XYDataset;
import org.jfree.data.xy.XYSeries;
import org.jfree.data.xy.XYSeriesCollection;

/// Writes values below marks. Where a label would cover an earlier one or a mark, it has its first
/// line only, or is left out.
final class ValueLabels extends AbstractXYItemRenderer {
  private static final double BELOW_PX = 5;
  private static final double MARGIN_PX = 3;
  private static final Color BACKGROUND = new Color(255, 255, 255, 190);

  private static final double HALF_MARK_PX = 4;

  private final transient List<Label> labels;
  private final transient List<Mark> marks;
  private final transient List<Rectangle2D> taken = new ArrayList<>();

  /// Lines of text below a position.
  record Label(double x, double y, List<String> lines) {}

  /// A mark with its interval.
  record Mark(double x, double low, double high) {}

  /// @param marks marks that labels must not cover
  ValueLabels(List<Label> labels, List<Mark> marks) {
    this.labels = List.copyOf(labels);
    this.marks = List.copyOf(marks);
  }

  /// Returns the positions, in the order of the labels.
  XYDataset data() {
    var series = new XYSeries("values", false);
    labels.forEach(label -> series.add(label.x, label.y));
    return new XYSeriesCollection(series);
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
    if (item == 0) {
      taken.clear();
      for (var mark : marks) {
        double left =
            domainAxis.valueToJava2D(mark.x, dataArea, plot.getDomainAxisEdge()) - HALF_MARK_PX;
        double high = rangeAxis.valueToJava2D(mark.high, dataArea, plot.getRangeAxisEdge());
        double low = rangeAxis.valueToJava2D(mark.low, dataArea, plot.getRangeAxisEdge());
        taken.add(
            new Rectangle2D.Double(
                left, high - HALF_MARK_PX, 2 * HALF_MARK_PX, low - high + 2 * HALF_MARK_PX));
      }
    }
    var label = labels.get(item);
    double x = domainAxis.valueToJava2D(label.x, dataArea, plot.getDomainAxisEdge());
    double top = rangeAxis.valueToJava2D(label.y, dataArea, plot.getRangeAxisEdge()) + BELOW_PX;
    var metrics = g2.getFontMetrics(Theme.SMALL);
    for (int lines = label.lines.size(); lines > 0; lines--) {
      var text = label.lines.subList(0, lines);
      double half = text.stream().mapToInt(metrics::stringWidth).max().orElse(0) / 2.0 + MARGIN_PX;
      // Inside of the plot, also at its edges.
      double centre = Math.max(dataArea.getMinX() + half, Math.min(x, dataArea.getMaxX() - half));
      var box =
          new Rectangle2D.Double(
              centre - half, top, 2 * half, (double) lines * metrics.getHeight());
      if (taken.stream().noneMatch(box::intersects) && box.getMaxY() <= dataArea.getMaxY()) {
        taken.add(box);
        g2.setPaint(BACKGROUND);
        g2.fill(box);
        g2.setFont(Theme.SMALL);
        g2.setPaint(Theme.INK);
        for (int line = 0; line < lines; line++) {
          TextUtils.drawAlignedString(
              text.get(line),
              g2,
              (float) centre,
              (float) (top + (line + 0.5) * metrics.getHeight()),
              TextAnchor.CENTER);
        }
        return;
      }
    }
  }
}
