package braid.internal.report.chart;

import java.awt.Graphics2D;
import java.awt.geom.Line2D;
import java.awt.geom.Rectangle2D;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jfree.chart.JFreeChart;
import org.jfree.chart.axis.CategoryAxis;
import org.jfree.chart.axis.NumberAxis;
import org.jfree.chart.axis.ValueAxis;
import org.jfree.chart.plot.CategoryPlot;
import org.jfree.chart.renderer.category.BarRenderer;
import org.jfree.chart.renderer.category.CategoryItemRendererState;
import org.jfree.chart.renderer.category.StandardBarPainter;
import org.jfree.chart.ui.RectangleEdge;
import org.jfree.data.Range;
import org.jfree.data.category.CategoryDataset;
import org.jfree.data.category.DefaultCategoryDataset;

/// Bars with their values and intervals: one group of bars for each name, one colour for each
/// series.
public final class BarsChart {
  private static final double WIDEST_BAR = 0.08;
  private static final double MARGIN = 0.02;
  private static final double ROOM_FOR_VALUES = 0.12;
  private static final int NAME_LINES = 3;
  private static final int CAP_PX = 4;

  /// One bar.
  ///
  /// @param series empty if all bars are of one
  /// @param low of the interval; NaN if there is none
  public record Bar(String name, String series, double value, double low, double high) {}

  private BarsChart() {}

  /// @param unit of the values, the axis's label
  public static JFreeChart of(String title, String unit, List<Bar> bars) {
    var data = new DefaultCategoryDataset();
    var intervals = new HashMap<List<String>, Bar>();
    double least = 0;
    double most = 0;
    for (var bar : bars) {
      data.addValue(bar.value, bar.series, bar.name);
      intervals.put(List.of(bar.series, bar.name), bar);
      least = Math.min(least, lowest(bar));
      most = Math.max(most, highest(bar));
    }
    var names = new CategoryAxis();
    names.setMaximumCategoryLabelLines(NAME_LINES);
    names.setLowerMargin(MARGIN);
    names.setUpperMargin(MARGIN);
    names.setTickLabelFont(Theme.TICK);
    names.setTickLabelPaint(Theme.INK);
    names.setAxisLinePaint(Theme.AXIS);
    names.setTickMarksVisible(false);
    var values = new NumberAxis(unit);
    Theme.style(values);
    double room = ROOM_FOR_VALUES * (most - least);
    values.setRange(new Range(least < 0 ? least - room : 0, most > 0 ? most + room : room));
    var plot = new CategoryPlot(data, names, values, renderer(data, intervals));
    plot.setBackgroundPaint(Theme.PAPER);
    plot.setOutlineVisible(false);
    plot.setRangeGridlinePaint(Theme.GRID);
    plot.setRangeGridlineStroke(Theme.HAIRLINE);
    plot.setRangeZeroBaselineVisible(true);
    plot.setRangeZeroBaselinePaint(Theme.AXIS);
    var chart = Theme.titled(title, "", plot);
    if (data.getRowCount() > 1) {
      Theme.legend(chart);
    }
    return chart;
  }

  private static double lowest(Bar bar) {
    return Double.isNaN(bar.low) ? bar.value : Math.min(bar.value, bar.low);
  }

  private static double highest(Bar bar) {
    return Double.isNaN(bar.high) ? bar.value : Math.max(bar.value, bar.high);
  }

  private static BarRenderer renderer(CategoryDataset data, Map<List<String>, Bar> intervals) {
    var renderer = new WithIntervals(intervals);
    renderer.setBarPainter(new StandardBarPainter());
    renderer.setShadowVisible(false);
    renderer.setMaximumBarWidth(WIDEST_BAR);
    renderer.setItemMargin(MARGIN);
    for (int series = 0; series < data.getRowCount(); series++) {
      renderer.setSeriesPaint(series, Theme.seriesColour(series));
    }
    return renderer;
  }

  /// Draws each bar's interval over it, and its value beyond both.
  private static final class WithIntervals extends BarRenderer {
    private static final long serialVersionUID = 1;

    private final transient Map<List<String>, Bar> intervals;

    WithIntervals(Map<List<String>, Bar> intervals) {
      this.intervals = intervals;
    }

    @Override
    public void drawItem(
        Graphics2D g,
        CategoryItemRendererState state,
        Rectangle2D area,
        CategoryPlot plot,
        CategoryAxis names,
        ValueAxis values,
        CategoryDataset data,
        int row,
        int column,
        int pass) {
      super.drawItem(g, state, area, plot, names, values, data, row, column, pass);
      var key = List.of(data.getRowKey(row).toString(), data.getColumnKey(column).toString());
      var bar = intervals.get(key);
      if (bar == null) {
        return;
      }
      int visible = state.getVisibleSeriesIndex(row);
      double x =
          calculateBarW0(plot, plot.getOrientation(), area, names, state, visible, column)
              + state.getBarWidth() / 2;
      g.setPaint(Theme.INK);
      g.setStroke(Theme.HAIRLINE);
      if (!Double.isNaN(bar.low) && !Double.isNaN(bar.high)) {
        double low = values.valueToJava2D(bar.low, area, RectangleEdge.LEFT);
        double high = values.valueToJava2D(bar.high, area, RectangleEdge.LEFT);
        g.draw(new Line2D.Double(x, low, x, high));
        g.draw(new Line2D.Double(x - CAP_PX, low, x + CAP_PX, low));
        g.draw(new Line2D.Double(x - CAP_PX, high, x + CAP_PX, high));
      }
      var text = String.format(Locale.ROOT, "%.3g", bar.value);
      g.setFont(Theme.SMALL);
      var size = g.getFontMetrics();
      double y =
          bar.value < 0
              ? values.valueToJava2D(lowest(bar), area, RectangleEdge.LEFT) + size.getAscent() + 2
              : values.valueToJava2D(highest(bar), area, RectangleEdge.LEFT) - CAP_PX;
      g.drawString(text, (float) (x - size.stringWidth(text) / 2.0), (float) y);
    }
  }
}
