package braid.internal.report.chart;

import braid.internal.report.value.TimeScale;
import java.awt.BasicStroke;
import java.awt.Graphics2D;
import java.awt.geom.Rectangle2D;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.DoubleFunction;
import org.jfree.chart.JFreeChart;
import org.jfree.chart.axis.AxisLocation;
import org.jfree.chart.axis.CategoryAxis;
import org.jfree.chart.axis.CategoryLabelPositions;
import org.jfree.chart.axis.NumberAxis;
import org.jfree.chart.axis.ValueAxis;
import org.jfree.chart.plot.CategoryPlot;
import org.jfree.chart.plot.PlotOrientation;
import org.jfree.chart.renderer.category.BarRenderer;
import org.jfree.chart.renderer.category.CategoryItemRendererState;
import org.jfree.chart.ui.RectangleInsets;
import org.jfree.data.Range;
import org.jfree.data.category.CategoryDataset;
import org.jfree.data.category.DefaultCategoryDataset;

/// Horizontal bars in groups by name, one colour per series. Each interval is drawn over its bar,
/// and value, unit and interval are written beside it, right of the plot.
public final class BarsChart {
  private static final int BAR_PX = 18;
  private static final int GROUP_GAP_PX = 14;
  private static final int AROUND_BARS_PX = 110;
  private static final int LEGEND_PX = 26;
  private static final double BAR_GAP_PX = 1;
  private static final double TEXT_GAP_PX = 10;
  private static final double MARGIN = 0.03;
  private static final String MISSING = "no value";
  private static final float WIDEST_NAMES = 0.3f;

  /// One bar.
  ///
  /// @param value NaN if it is missing
  /// @param series empty if all bars are of one
  /// @param low of the interval; NaN if there is none
  /// @param note text written after the value; may be empty
  public record Bar(
      String name, String series, double value, double low, double high, String note) {}

  private BarsChart() {}

  /// @param label label of the axis
  /// @param unit unit of the values; may be empty
  public static JFreeChart of(
      String title, String subtitle, String label, String unit, List<Bar> all) {
    var bars = distinct(all);
    var data = new DefaultCategoryDataset();
    var byPlace = new HashMap<List<String>, Bar>();
    double least = 0;
    double most = 0;
    boolean empty = bars.stream().allMatch(bar -> Double.isNaN(bar.value));
    for (var bar : empty ? List.<Bar>of() : bars) {
      data.addValue(bar.value, bar.series, bar.name);
      byPlace.put(List.of(bar.series, bar.name), bar);
      if (Double.isNaN(bar.value)) {
        continue;
      }
      least = Math.min(least, Double.isNaN(bar.low) ? bar.value : Math.min(bar.value, bar.low));
      most = Math.max(most, Double.isNaN(bar.high) ? bar.value : Math.max(bar.value, bar.high));
    }
    boolean signed = least < 0;
    var texts = new HashMap<List<String>, String>();
    byPlace.forEach((place, bar) -> texts.put(place, text(bar, unit, signed)));
    var values = new NumberAxis(label);
    Theme.style(values);
    if (most == least) {
      most = 1;
    }
    double room = MARGIN * (most - least);
    values.setRange(new Range(least < 0 ? least - room : 0, most + room));
    var plot = new Bars(data, names(), values, new Renderer(byPlace, texts));
    plot.setBackgroundPaint(Theme.PAPER);
    plot.setOutlineVisible(false);
    plot.setRangeGridlinePaint(Theme.GRID);
    plot.setRangeGridlineStroke(Theme.HAIRLINE);
    plot.setRangeZeroBaselineVisible(true);
    plot.setRangeZeroBaselinePaint(Theme.REFERENCE);
    plot.setNoDataMessage("no bar has a value of " + label);
    plot.setNoDataMessageFont(Theme.TICK);
    int longest = texts.values().stream().mapToInt(String::length).max().orElse(0);
    plot.setInsets(new RectangleInsets(2, 2, 2, TEXT_GAP_PX + Theme.SMALL_LETTER_PX * longest));
    var chart = Theme.titled(title, subtitle, plot);
    if (data.getRowCount() > 1) {
      Theme.legend(chart);
    }
    return chart;
  }

  /// Numbers bars of one name and series, so that each is drawn.
  private static List<Bar> distinct(List<Bar> bars) {
    var seen = new HashMap<List<String>, Integer>();
    var distinct = new ArrayList<Bar>();
    for (var bar : bars) {
      int number = seen.merge(List.of(bar.series, bar.name), 1, Integer::sum);
      distinct.add(
          number == 1
              ? bar
              : new Bar(
                  bar.name + " (" + number + ")",
                  bar.series,
                  bar.value,
                  bar.low,
                  bar.high,
                  bar.note));
    }
    return distinct;
  }

  private static CategoryAxis names() {
    var names = new CategoryAxis();
    names.setMaximumCategoryLabelLines(2);
    names.setMaximumCategoryLabelWidthRatio(WIDEST_NAMES);
    names.setCategoryLabelPositions(CategoryLabelPositions.STANDARD);
    names.setLowerMargin(0);
    names.setUpperMargin(0);
    names.setCategoryMargin(0);
    names.setTickLabelFont(Theme.TICK);
    names.setTickLabelPaint(Theme.INK);
    names.setAxisLinePaint(Theme.AXIS);
    names.setTickMarksVisible(false);
    return names;
  }

  private static String text(Bar bar, String unit, boolean signed) {
    if (Double.isNaN(bar.value)) {
      return MISSING;
    }
    var space = unit.isEmpty() || unit.equals("%") ? unit : " " + unit;
    DoubleFunction<String> number = value -> number(value, unit, signed);
    var text = number.apply(bar.value) + space;
    if (!Double.isNaN(bar.low) && !Double.isNaN(bar.high)) {
      text += " (%s to %s)".formatted(number.apply(bar.low), number.apply(bar.high));
    }
    return bar.note.isEmpty() ? text : text + ", " + bar.note;
  }

  /// Returns percentages with one decimal, other values with three significant digits.
  private static String number(double value, String unit, boolean signed) {
    double size = Math.abs(value);
    var digits =
        unit.equals("%") ? String.format(Locale.ROOT, "%.1f", size) : TimeScale.digits(size);
    return value < 0 ? "−" + digits : signed && value > 0 ? "+" + digits : digits;
  }

  /// A plot as high as its bars need.
  private static final class Bars extends CategoryPlot implements ChartImage.Tall {
    private static final long serialVersionUID = 1;

    Bars(CategoryDataset data, CategoryAxis names, ValueAxis values, Renderer renderer) {
      super(data, names, values, renderer);
      setOrientation(PlotOrientation.HORIZONTAL);
      setRangeAxisLocation(AxisLocation.BOTTOM_OR_LEFT);
      var series = new ArrayList<String>();
      for (int row = 0; row < data.getRowCount(); row++) {
        series.add(data.getRowKey(row).toString());
      }
      var colours = Theme.seriesColours(series);
      for (int row = 0; row < colours.size(); row++) {
        renderer.setSeriesPaint(row, colours.get(row));
        renderer.setLegendShape(row, Theme.SWATCH);
      }
    }

    @Override
    public int heightPx() {
      var data = getDataset();
      return AROUND_BARS_PX
          + (data.getRowCount() > 1 ? LEGEND_PX : 0)
          + Math.max(1, data.getColumnCount()) * (GROUP_GAP_PX + BAR_PX * most(data));
    }
  }

  /// Returns the number of bars in the largest group.
  private static int most(CategoryDataset data) {
    int most = 1;
    for (int column = 0; column < data.getColumnCount(); column++) {
      most = Math.max(most, present(data, column).size());
    }
    return most;
  }

  /// Returns the series that have a bar in a group.
  private static List<Integer> present(CategoryDataset data, int column) {
    var present = new ArrayList<Integer>();
    for (int row = 0; row < data.getRowCount(); row++) {
      if (data.getValue(row, column) != null) {
        present.add(row);
      }
    }
    return present;
  }

  /// Draws the bars of a group side by side around its middle, without gaps for missing series.
  private static final class Renderer extends BarRenderer {
    private static final long serialVersionUID = 1;

    private final transient Map<List<String>, Bar> bars;
    private final transient Map<List<String>, String> texts;

    Renderer(Map<List<String>, Bar> bars, Map<List<String>, String> texts) {
      this.bars = bars;
      this.texts = texts;
      setShadowVisible(false);
      setDefaultOutlineStroke(new BasicStroke(0));
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
      var place = List.of(data.getRowKey(row).toString(), data.getColumnKey(column).toString());
      var bar = bars.get(place);
      if (bar == null) {
        return;
      }
      int groups = data.getColumnCount();
      var edge = plot.getDomainAxisEdge();
      double top = names.getCategoryStart(column, groups, area, edge);
      double bottom = names.getCategoryEnd(column, groups, area, edge);
      double thick = Math.min(BAR_PX, (bottom - top) / most(data));
      var present = present(data, column);
      double y = (top + bottom - present.size() * thick) / 2 + present.indexOf(row) * thick;
      var across = plot.getRangeAxisEdge();
      double zero = values.valueToJava2D(0, area, across);
      double end = values.valueToJava2D(bar.value, area, across);
      var shape =
          new Rectangle2D.Double(
              Math.min(zero, end),
              y + BAR_GAP_PX / 2,
              Math.max(1, Math.abs(end - zero)),
              thick - BAR_GAP_PX);
      g.setPaint(getItemPaint(row, column));
      if (!Double.isNaN(bar.value)) {
        g.fill(shape);
      }
      if (!Double.isNaN(bar.low) && !Double.isNaN(bar.high)) {
        Theme.interval(
            g,
            values.valueToJava2D(bar.low, area, across),
            values.valueToJava2D(bar.high, area, across),
            y + thick / 2,
            false);
      }
      // Right of the plot, where no bar or interval covers it.
      var clip = g.getClip();
      g.setClip(null);
      g.setFont(Theme.SMALL);
      g.setPaint(Theme.INK);
      g.drawString(
          texts.getOrDefault(place, ""),
          (float) (area.getMaxX() + TEXT_GAP_PX),
          (float) (y + thick / 2 + g.getFontMetrics().getAscent() / 2.0 - 1));
      g.setClip(clip);
      var entities = state.getEntityCollection();
      if (entities != null) {
        addItemEntity(entities, data, row, column, shape);
      }
    }
  }
}
