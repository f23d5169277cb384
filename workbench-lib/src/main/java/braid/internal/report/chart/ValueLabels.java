package braid.internal.report.chart;

import java.awt.Color;
import java.awt.Graphics2D;
import java.awt.geom.Rectangle2D;
import java.util.ArrayList;
import java.util.List;
import org.jfree.chart.text.TextUtils;
import org.jfree.chart.ui.TextAnchor;
import org.jfree.data.xy.XYDataset;
import org.jfree.data.xy.XYSeries;
import org.jfree.data.xy.XYSeriesCollection;

/// Writes values below marks, or above them if there is more room. Where a label would cover an
/// earlier one or a mark, it has its first line only, or is left out.
final class ValueLabels extends ItemRenderer {
  private static final double GAP_PX = 5;
  private static final double MARGIN_PX = 3;
  private static final Color BACKGROUND = new Color(255, 255, 255, 190);

  private static final double HALF_MARK_PX = 4;

  private final transient List<Label> labels;
  private final transient List<Mark> marks;
  private final transient List<Rectangle2D> taken = new ArrayList<>();

  /// Lines of text below or above the marks of a position.
  record Label(double x, double low, double high, List<String> lines) {}

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
    labels.forEach(label -> series.add(label.x, label.low));
    return new XYSeriesCollection(series);
  }

  @Override
  void draw(Graphics2D g2, Axes axes, XYDataset dataset, int series, int item) {
    if (item == 0) {
      taken.clear();
      for (var mark : marks) {
        double left = axes.x(mark.x) - HALF_MARK_PX;
        double high = axes.y(mark.high);
        double low = axes.y(mark.low);
        taken.add(
            new Rectangle2D.Double(
                left, high - HALF_MARK_PX, 2 * HALF_MARK_PX, low - high + 2 * HALF_MARK_PX));
      }
    }
    var label = labels.get(item);
    double x = axes.x(label.x);
    double below = axes.y(label.low) + GAP_PX;
    double above = axes.y(label.high) - GAP_PX;
    var metrics = g2.getFontMetrics(Theme.SMALL);
    for (int lines = label.lines.size(); lines > 0; lines--) {
      var text = label.lines.subList(0, lines);
      double half = text.stream().mapToInt(metrics::stringWidth).max().orElse(0) / 2.0 + MARGIN_PX;
      // Inside of the plot, also at its edges.
      double centre =
          Math.max(axes.area().getMinX() + half, Math.min(x, axes.area().getMaxX() - half));
      double height = (double) lines * metrics.getHeight();
      for (double top : new double[] {below, above - height}) {
        var box = new Rectangle2D.Double(centre - half, top, 2 * half, height);
        if (taken.stream().noneMatch(box::intersects) && axes.area().contains(box)) {
          taken.add(box);
          draw(g2, box, text);
          return;
        }
      }
    }
  }

  private static void draw(Graphics2D g2, Rectangle2D box, List<String> lines) {
    g2.setPaint(BACKGROUND);
    g2.fill(box);
    g2.setFont(Theme.SMALL);
    g2.setPaint(Theme.INK);
    double height = box.getHeight() / lines.size();
    for (int line = 0; line < lines.size(); line++) {
      TextUtils.drawAlignedString(
          lines.get(line),
          g2,
          (float) box.getCenterX(),
          (float) (box.getMinY() + (line + 0.5) * height),
          TextAnchor.CENTER);
    }
  }
}
