package braid.internal.report.chart;

import braid.model.Estimate;
import java.awt.geom.Ellipse2D;
import java.text.DecimalFormat;
import java.text.DecimalFormatSymbols;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.SequencedMap;
import java.util.TreeSet;
import java.util.stream.DoubleStream;
import org.jfree.chart.JFreeChart;
import org.jfree.chart.LegendItem;
import org.jfree.chart.LegendItemCollection;
import org.jfree.chart.axis.LogAxis;
import org.jfree.chart.axis.NumberAxis;
import org.jfree.chart.axis.NumberTickUnit;
import org.jfree.chart.axis.ValueAxis;
import org.jfree.chart.plot.IntervalMarker;
import org.jfree.chart.plot.ValueMarker;
import org.jfree.chart.plot.XYPlot;
import org.jfree.chart.renderer.xy.XYLineAndShapeRenderer;
import org.jfree.chart.ui.Layer;
import org.jfree.data.xy.XYSeries;
import org.jfree.data.xy.XYSeriesCollection;
import org.jfree.data.xy.YIntervalSeries;
import org.jfree.data.xy.YIntervalSeriesCollection;

/// Time ÷ unfused against a size: a line per method, unfused as a dashed line at 1, and a band at
/// each size where it is undecided which is fastest. Predicted lines are dashed, in the colour of
/// the method, and have hollow marks.
public final class CrossoverChart {
  /// Half of the width of a band, as a power of two.
  private static final double HALF_BAND = 0.4;

  private static final double HEADROOM = 0.05;

  /// Ratio of the largest value to the smallest from which on the axis is logarithmic.
  private static final double MOST_LINEAR = 4;

  private CrossoverChart() {}

  /// @param size label of the axis of sizes
  /// @param lines share by which each method takes longer than unfused, by size
  /// @param predicted the same, as predicted
  /// @param prediction what the legend calls predicted lines
  /// @param undecided sizes whose fastest method is undecided
  public static JFreeChart of(
      String title,
      String subtitle,
      String size,
      SequencedMap<String, SequencedMap<Integer, Estimate>> lines,
      SequencedMap<String, SequencedMap<Integer, Double>> predicted,
      String prediction,
      List<Integer> undecided) {
    var sizes = new TreeSet<Integer>();
    lines.values().forEach(points -> sizes.addAll(points.keySet()));
    predicted.values().forEach(points -> sizes.addAll(points.keySet()));
    // A method has one colour, measured or predicted.
    var names = new LinkedHashSet<>(lines.keySet());
    names.addAll(predicted.keySet());
    var plot =
        new XYPlot(
            measured(names, lines),
            new SplitsAxis(size, sizes),
            ratio(lines, predicted),
            StudyMarks.dots(List.copyOf(names), true));
    if (!predicted.isEmpty()) {
      plot.setDataset(1, predicted(names, predicted));
      plot.setRenderer(1, hollow(List.copyOf(names)));
    }
    for (int undecidedSize : undecided) {
      double x = SplitsAxis.position(undecidedSize);
      plot.addDomainMarker(
          new IntervalMarker(x - HALF_BAND, x + HALF_BAND, Theme.GRID), Layer.BACKGROUND);
    }
    plot.addRangeMarker(new ValueMarker(1, Theme.REFERENCE, Theme.DASHED), Layer.BACKGROUND);
    plot.setFixedLegendItems(legend(plot, prediction, !undecided.isEmpty()));
    var chart = Theme.chart(title, subtitle, plot);
    Theme.legend(chart);
    return chart;
  }

  private static YIntervalSeriesCollection measured(
      Collection<String> names, SequencedMap<String, SequencedMap<Integer, Estimate>> lines) {
    var data = new YIntervalSeriesCollection();
    for (var name : names) {
      var series = new YIntervalSeries(name);
      var points = lines.get(name);
      if (points != null) {
        points.forEach(
            (size, excess) ->
                series.add(
                    SplitsAxis.position(size),
                    1 + excess.value(),
                    1 + excess.low(),
                    1 + excess.high()));
      }
      data.addSeries(series);
    }
    return data;
  }

  private static XYSeriesCollection predicted(
      Collection<String> names, SequencedMap<String, SequencedMap<Integer, Double>> lines) {
    var data = new XYSeriesCollection();
    for (var name : names) {
      var series = new XYSeries(name);
      var points = lines.get(name);
      if (points != null) {
        points.forEach((size, excess) -> series.add(SplitsAxis.position(size), 1 + excess));
      }
      data.addSeries(series);
    }
    return data;
  }

  private static ValueAxis ratio(
      SequencedMap<String, SequencedMap<Integer, Estimate>> lines,
      SequencedMap<String, SequencedMap<Integer, Double>> predicted) {
    var label = "median time ÷ unfused";
    var all =
        DoubleStream.concat(
                lines.values().stream()
                    .flatMap(points -> points.values().stream())
                    .flatMapToDouble(each -> DoubleStream.of(each.low(), each.high())),
                predicted.values().stream()
                    .flatMap(points -> points.values().stream())
                    .mapToDouble(excess -> excess))
            .map(excess -> 1 + excess)
            .toArray();
    double least = DoubleStream.concat(DoubleStream.of(1), DoubleStream.of(all)).min().orElse(1);
    double most = DoubleStream.concat(DoubleStream.of(1), DoubleStream.of(all)).max().orElse(1);
    if (most / least <= MOST_LINEAR || least <= 0) {
      var linear = new NumberAxis(label);
      linear.setRange(least - HEADROOM, most + HEADROOM);
      return linear;
    }
    var logarithmic = new LogAxis(label);
    logarithmic.setBase(2);
    logarithmic.setTickUnit(new NumberTickUnit(1));
    logarithmic.setMinorTickMarksVisible(false);
    logarithmic.setNumberFormatOverride(
        new DecimalFormat("0.###", DecimalFormatSymbols.getInstance(Locale.ROOT)));
    logarithmic.setRange(least * (1 - HEADROOM), most * (1 + HEADROOM));
    return logarithmic;
  }

  private static XYLineAndShapeRenderer hollow(List<String> names) {
    var renderer = new XYLineAndShapeRenderer(true, true);
    renderer.setUseFillPaint(true);
    renderer.setDefaultFillPaint(Theme.PAPER);
    renderer.setDrawOutlines(true);
    var colours = Theme.seriesColours(names);
    for (int line = 0; line < colours.size(); line++) {
      renderer.setSeriesPaint(line, colours.get(line));
      renderer.setSeriesFillPaint(line, Theme.PAPER);
      renderer.setSeriesStroke(line, Theme.DASHED);
      renderer.setSeriesOutlineStroke(line, Theme.LINE);
      renderer.setSeriesShape(line, mark());
    }
    return renderer;
  }

  private static Ellipse2D mark() {
    double px = StudyMarks.DOT_PX;
    return new Ellipse2D.Double(-px / 2, -px / 2, px, px);
  }

  private static LegendItemCollection legend(XYPlot plot, String prediction, boolean bands) {
    var items = new LegendItemCollection();
    items.add(
        new LegendItem("unfused", null, null, null, Theme.DASH, Theme.DASHED, Theme.REFERENCE));
    items.addAll(plot.getRenderer().getLegendItems());
    if (!prediction.isEmpty()) {
      var item =
          new LegendItem(
              prediction,
              null,
              null,
              null,
              true,
              mark(),
              true,
              Theme.PAPER,
              true,
              Theme.INK,
              Theme.LINE,
              true,
              Theme.DASH,
              Theme.DASHED,
              Theme.INK);
      items.add(item);
    }
    if (bands) {
      items.add(new LegendItem("undecided", null, null, null, Theme.SWATCH, Theme.GRID));
    }
    return items;
  }
}
