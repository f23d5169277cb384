package braid.internal.report.chart;

import java.awt.Color;
import java.awt.FontMetrics;
import java.awt.Graphics2D;
import java.awt.Shape;
import java.awt.geom.Path2D;
import java.awt.geom.Rectangle2D;
import java.util.List;
import java.util.function.Predicate;
import java.util.function.ToDoubleFunction;
import org.jfree.chart.LegendItem;
import org.jfree.chart.text.TextUtils;
import org.jfree.chart.ui.TextAnchor;
import org.jfree.data.xy.IntervalXYDataset;
import org.jfree.data.xy.XYDataset;
import org.jspecify.annotations.Nullable;

/// Draws each bar in its lane, from its start to its end, in the form of its group. Bars have a
/// minimum width; a label is drawn only if it fits into its bar.
final class LaneBars extends ItemRenderer {
  private static final double SHORTEST_BAR_PX = 1.5;
  private static final double GAP_PX = 1;
  private static final double NARROWEST_BAR_WITH_GAP_PX = 4;
  private static final double LABEL_MARGIN_PX = 2;
  private static final double THREAD_PX = 3;
  private static final double TICK_PX = 1.2;
  private static final double TICK_HEAD_PX = 2.5;
  private static final double TICK_ABOVE_PX = 1;

  private static final double EDGE_PX = 1.6;
  private static final double THREAD_LABEL_MARGIN_PX = 8;

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
  public @Nullable LegendItem getLegendItem(int datasetIndex, int series) {
    var group = groups.get(series);
    if (group.name().isEmpty()) {
      return null;
    }
    Shape shape =
        switch (group.form()) {
          case BLOCK, BACKGROUND, LABEL -> Theme.SWATCH;
          case THREAD -> THREAD_SWATCH;
          case TICK -> tick(0, -SWATCH_TICK_PX / 2, SWATCH_TICK_PX / 2);
          case EDGE -> edge(0, -SWATCH_TICK_PX / 2, SWATCH_TICK_PX / 2);
        };
    return new LegendItem(group.name(), null, null, null, shape, group.colour());
  }

  @Override
  void draw(Graphics2D g2, Axes axes, XYDataset dataset, int series, int item) {
    var bars = (IntervalXYDataset) dataset;
    double from = axes.x(bars.getStartXValue(series, item));
    double to = axes.x(bars.getEndXValue(series, item));
    double top = axes.y(bars.getStartYValue(series, item));
    double bottom = axes.y(bars.getEndYValue(series, item));
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
        var text = label(g2, group, item, axes, LABEL_MARGIN_PX);
        drawLabel(g2, text, bar, Theme.inkOn(group.colour()));
      }
      case THREAD -> {
        double width = Math.max(to - from, SHORTEST_BAR_PX);
        g2.fill(new Rectangle2D.Double(from, middle - THREAD_PX / 2, width, THREAD_PX));
        var text = label(g2, group, item, axes, THREAD_LABEL_MARGIN_PX);
        if (!text.isEmpty()) {
          double half = g2.getFontMetrics(Theme.SMALL).stringWidth(text) / 2.0 + LABEL_MARGIN_PX;
          double centre = from + width / 2;
          var gap =
              new Rectangle2D.Double(centre - half, middle - THREAD_PX, 2 * half, 2 * THREAD_PX);
          g2.setPaint(Theme.PAPER);
          g2.fill(gap);
          drawLabel(g2, text, new Rectangle2D.Double(from, middle, width, 0), Theme.QUIET_INK);
        }
      }
      case TICK -> g2.fill(tick(from, middle - height / 2 - TICK_ABOVE_PX, middle + height / 2));
      case EDGE -> g2.fill(edge(from, middle - height / 2, middle + height / 2));
      case BACKGROUND, LABEL -> {
        var space = new Rectangle2D.Double(from, middle - height / 2, to - from, height);
        if (group.form() == LanePlot.Form.BACKGROUND) {
          g2.fill(space);
        }
        var text = label(g2, group, item, axes, LABEL_MARGIN_PX);
        drawLabel(g2, text, space, Theme.QUIET_INK);
      }
    }
  }

  private static Rectangle2D edge(double x, double top, double bottom) {
    return new Rectangle2D.Double(x - EDGE_PX / 2, top, EDGE_PX, bottom - top);
  }

  /// Returns the longest label for which all bars of the lane have room that have room for their
  /// shortest; empty if this one has no room.
  private static String label(
      Graphics2D g2, LanePlot.BarGroup group, int item, Axes axes, double marginPx) {
    var metrics = g2.getFontMetrics(Theme.SMALL);
    var bar = group.bars().get(item);
    ToDoubleFunction<LanePlot.Bar> room =
        each -> axes.x(each.to()) - axes.x(each.from()) - 2 * marginPx;
    if (bar.labels().isEmpty()
        || metrics.stringWidth(bar.labels().getLast()) > room.applyAsDouble(bar)) {
      return "";
    }
    var others =
        group.bars().stream()
            .filter(each -> each.lane() == bar.lane() && !each.labels().isEmpty())
            .filter(
                each -> metrics.stringWidth(each.labels().getLast()) <= room.applyAsDouble(each))
            .toList();
    int level = 0;
    while (!others.stream().allMatch(fits(level, metrics, room))) {
      level++;
    }
    return at(level, bar);
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

  private static Predicate<LanePlot.Bar> fits(
      int level, FontMetrics metrics, ToDoubleFunction<LanePlot.Bar> room) {
    return bar -> metrics.stringWidth(at(level, bar)) <= room.applyAsDouble(bar);
  }

  /// Returns a shorter label for a higher level.
  private static String at(int level, LanePlot.Bar bar) {
    return bar.labels().get(Math.min(level, bar.labels().size() - 1));
  }

  private static void drawLabel(Graphics2D g2, String label, Rectangle2D bar, Color ink) {
    if (!label.isEmpty()) {
      g2.setFont(Theme.SMALL);
      g2.setPaint(ink);
      TextUtils.drawAlignedString(
          label, g2, (float) bar.getCenterX(), (float) bar.getCenterY(), TextAnchor.CENTER);
    }
  }
}
