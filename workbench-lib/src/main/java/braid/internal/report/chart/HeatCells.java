package braid.internal.report.chart;

import java.awt.Color;
import java.awt.Graphics2D;
import java.awt.geom.Rectangle2D;
import java.util.Arrays;
import java.util.List;
import org.jfree.chart.text.TextUtils;
import org.jfree.chart.ui.TextAnchor;
import org.jfree.data.xy.XYDataset;

/// Draws each item as a cell around its integer position: the smaller its value, the darker, with
/// the lines of its label inside that have room; one may be ringed.
final class HeatCells extends ItemRenderer {
  private static final Color DARKEST = new Color(0x0B4F83);
  private static final Color LIGHTEST = new Color(0xE8F1F8);
  private static final double GAP_PX = 2;
  private static final double RING_INSET_PX = 3;

  private final transient double[] values;
  private final transient List<List<String>> labels;
  private final transient int ringed;

  /// @param ringed index of the item to ring, or -1
  HeatCells(double[] values, List<List<String>> labels, int ringed) {
    this.values = values.clone();
    this.labels = List.copyOf(labels);
    this.ringed = ringed;
  }

  @Override
  void draw(Graphics2D g2, Axes axes, XYDataset dataset, int series, int item) {
    double x = dataset.getXValue(series, item);
    double y = dataset.getYValue(series, item);
    double left = axes.x(x - 0.5) + GAP_PX / 2;
    double right = axes.x(x + 0.5) - GAP_PX / 2;
    double top = axes.y(y + 0.5) + GAP_PX / 2;
    double bottom = axes.y(y - 0.5) - GAP_PX / 2;
    var cell = new Rectangle2D.Double(left, top, right - left, bottom - top);
    var colour = colour(values[item]);
    g2.setPaint(colour);
    g2.fill(cell);
    if (item == ringed) {
      g2.setPaint(Theme.BEST);
      g2.setStroke(Theme.RING);
      g2.draw(
          new Rectangle2D.Double(
              left + RING_INSET_PX,
              top + RING_INSET_PX,
              cell.width - 2 * RING_INSET_PX,
              cell.height - 2 * RING_INSET_PX));
    }
    var metrics = g2.getFontMetrics(Theme.LABEL);
    var lines =
        labels.get(item).stream()
            .takeWhile(line -> metrics.stringWidth(line) < cell.width)
            .limit((long) (cell.height / metrics.getHeight()))
            .toList();
    g2.setFont(Theme.LABEL);
    g2.setPaint(Theme.inkOn(colour));
    for (int line = 0; line < lines.size(); line++) {
      double shift = (line - (lines.size() - 1) / 2.0) * metrics.getHeight();
      TextUtils.drawAlignedString(
          lines.get(line),
          g2,
          (float) cell.getCenterX(),
          (float) (cell.getCenterY() + shift),
          TextAnchor.CENTER);
    }
  }

  private Color colour(double value) {
    double least = Arrays.stream(values).min().orElse(value);
    double most = Arrays.stream(values).max().orElse(value);
    double lightness = most > least ? (value - least) / (most - least) : 0;
    return new Color(
        between(DARKEST.getRed(), LIGHTEST.getRed(), lightness),
        between(DARKEST.getGreen(), LIGHTEST.getGreen(), lightness),
        between(DARKEST.getBlue(), LIGHTEST.getBlue(), lightness));
  }

  private static int between(int from, int to, double share) {
    return (int) Math.round(from + share * (to - from));
  }
}
