package braid.internal.report.chart;

import braid.model.Estimate;
import java.util.Collection;
import java.util.List;
import java.util.SequencedMap;
import java.util.TreeSet;
import org.jfree.chart.JFreeChart;
import org.jfree.chart.LegendItem;
import org.jfree.chart.LegendItemCollection;
import org.jfree.chart.axis.NumberAxis;
import org.jfree.chart.plot.IntervalMarker;
import org.jfree.chart.plot.ValueMarker;
import org.jfree.chart.plot.XYPlot;
import org.jfree.chart.ui.Layer;
import org.jfree.data.xy.YIntervalSeries;
import org.jfree.data.xy.YIntervalSeriesCollection;

/// Time ÷ unfused against a size: a line per method, unfused as a dashed line at 1, and a band at
/// each size where it is undecided which is fastest.
public final class CrossoverChart {
  /// Half of the width of a band, as a power of two.
  private static final double HALF_BAND = 0.4;

  private static final double HEADROOM = 0.05;

  private CrossoverChart() {}

  /// @param lines share by which each method takes longer than unfused, by size
  /// @param undecided sizes whose fastest method is undecided
  public static JFreeChart of(
      String title,
      String subtitle,
      SequencedMap<String, SequencedMap<Integer, Estimate>> lines,
      List<Integer> undecided) {
    var data = new YIntervalSeriesCollection();
    var sizes = new TreeSet<Integer>();
    lines.forEach(
        (name, points) -> {
          var series = new YIntervalSeries(name);
          points.forEach(
              (size, excess) -> {
                sizes.add(size);
                series.add(
                    SplitsAxis.position(size),
                    1 + excess.value(),
                    1 + excess.low(),
                    1 + excess.high());
              });
          data.addSeries(series);
        });
    var ratio = new NumberAxis("median time ÷ unfused");
    var all =
        lines.values().stream().map(SequencedMap::values).flatMap(Collection::stream).toList();
    double least = all.stream().mapToDouble(Estimate::low).min().orElse(0);
    double most = all.stream().mapToDouble(Estimate::high).max().orElse(0);
    ratio.setRange(1 + Math.min(0, least) - HEADROOM, 1 + Math.max(0, most) + HEADROOM);
    var plot =
        new XYPlot(
            data,
            new SplitsAxis("rows (m)", sizes),
            ratio,
            StudyMarks.dots(List.copyOf(lines.sequencedKeySet()), true));
    for (int size : undecided) {
      double x = SplitsAxis.position(size);
      plot.addDomainMarker(
          new IntervalMarker(x - HALF_BAND, x + HALF_BAND, Theme.GRID), Layer.BACKGROUND);
    }
    plot.addRangeMarker(new ValueMarker(1, Theme.REFERENCE, Theme.DASHED), Layer.BACKGROUND);
    plot.setFixedLegendItems(legend(plot, !undecided.isEmpty()));
    var chart = Theme.chart(title, subtitle, plot);
    Theme.legend(chart);
    return chart;
  }

  private static LegendItemCollection legend(XYPlot plot, boolean bands) {
    var items = new LegendItemCollection();
    items.add(
        new LegendItem("unfused", null, null, null, Theme.DASH, Theme.DASHED, Theme.REFERENCE));
    items.addAll(plot.getLegendItems());
    if (bands) {
      items.add(new LegendItem("undecided", null, null, null, Theme.SWATCH, Theme.GRID));
    }
    return items;
  }
}
