package braid.internal.report.chart;

import java.awt.Graphics2D;
import java.awt.geom.Rectangle2D;
import java.util.ArrayList;
import java.util.List;
import java.util.SortedSet;
import java.util.TreeSet;
import org.jfree.chart.axis.AxisState;
import org.jfree.chart.axis.NumberAxis;
import org.jfree.chart.axis.NumberTick;
import org.jfree.chart.axis.Tick;
import org.jfree.chart.axis.TickType;
import org.jfree.chart.ui.RectangleEdge;
import org.jfree.chart.ui.TextAnchor;

/// Axis of counts, such as splits, on a binary logarithmic scale, with a tick at each measured
/// count. Its values are the logarithms.
final class SplitsAxis extends NumberAxis {
  private static final double MARGIN = 0.4;
  private static final double LABEL_GAP_PX = 6;

  private final transient SortedSet<Integer> counts;

  SplitsAxis(String label, SortedSet<Integer> counts) {
    super(label);
    this.counts = new TreeSet<>(counts);
    setRange(position(counts.first()) - MARGIN, position(counts.last()) + MARGIN);
  }

  static double position(int count) {
    return Math.log(count) / Math.log(2);
  }

  @Override
  public List<Tick> refreshTicks(
      Graphics2D g2, AxisState state, Rectangle2D dataArea, RectangleEdge edge) {
    var metrics = g2.getFontMetrics(getTickLabelFont());
    var ticks = new ArrayList<Tick>();
    double free = Double.NEGATIVE_INFINITY;
    for (int count : counts) {
      double x = valueToJava2D(position(count), dataArea, edge);
      double half = metrics.stringWidth(Integer.toString(count)) / 2.0;
      boolean room = x - half >= free;
      if (room) {
        free = x + half + LABEL_GAP_PX;
      }
      ticks.add(
          new NumberTick(
              room ? TickType.MAJOR : TickType.MINOR,
              position(count),
              room ? Integer.toString(count) : "",
              TextAnchor.TOP_CENTER,
              TextAnchor.CENTER,
              0));
    }
    return ticks;
  }
}
