package braid.internal.report.chart;

import braid.internal.report.ConfigurationColumns;
import braid.internal.report.Standings;
import braid.internal.report.Standings.Standing;
import braid.internal.report.TimeScale;
import braid.internal.report.statistics.Spread;
import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.geom.Ellipse2D;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import java.util.TreeSet;
import org.jfree.chart.JFreeChart;
import org.jfree.chart.LegendItem;
import org.jfree.chart.LegendItemCollection;
import org.jfree.chart.axis.NumberAxis;
import org.jfree.chart.plot.DatasetRenderingOrder;
import org.jfree.chart.plot.IntervalMarker;
import org.jfree.chart.plot.ValueMarker;
import org.jfree.chart.plot.XYPlot;
import org.jfree.chart.renderer.xy.XYErrorRenderer;
import org.jfree.chart.renderer.xy.XYLineAndShapeRenderer;
import org.jfree.chart.ui.Layer;
import org.jfree.data.xy.XYSeries;
import org.jfree.data.xy.XYSeriesCollection;
import org.jfree.data.xy.YIntervalSeries;
import org.jfree.data.xy.YIntervalSeriesCollection;

/// Time against split count: a line for each combination of the other settings, bars from p10 to
/// p90, the unfused reference dashed on a band of its own p10 to p90, the best ringed and so, more
/// lightly, what ties with it.
public final class SplitsChart {
  /// How far apart the bars of neighbouring series stand, in powers of two.
  private static final double DODGE = 0.06;

  private static final double WIDEST_DODGE = 0.4;
  private static final double RING_PX = 15;
  private static final double DOT_PX = 6;
  private static final double HEADROOM = 0.12;

  private SplitsChart() {}

  public static JFreeChart of(Standings standings) {
    var lines = lines(standings);
    double largest = standings.unfused().p90Nanos();
    double smallest = standings.unfused().p10Nanos();
    for (var standing : standings.configurations()) {
      largest = Math.max(largest, standing.time().p90Nanos());
      smallest = Math.min(smallest, standing.time().p10Nanos());
    }
    var scale = TimeScale.of(largest);
    var data = new YIntervalSeriesCollection();
    var best = new XYSeries("best");
    var ties = new XYSeries("ties with best");
    double dodge = Math.min(DODGE, WIDEST_DODGE / lines.size());
    double shift = -dodge * (lines.size() - 1) / 2;
    for (var line : lines.entrySet()) {
      var series = new YIntervalSeries(line.getKey());
      for (var standing : line.getValue()) {
        var time = standing.time();
        double x = SplitsAxis.position(standing.overlap().splits()) + shift;
        double y = scale.from(time.medianNanos());
        series.add(x, y, scale.from(time.p10Nanos()), scale.from(time.p90Nanos()));
        switch (standing.verdict()) {
          case BEST -> best.add(x, y);
          case TIED -> ties.add(x, y);
          case SLOWER -> {}
        }
      }
      data.addSeries(series);
      shift += dodge;
    }

    var splits = new TreeSet<Integer>();
    standings.configurations().forEach(s -> splits.add(s.overlap().splits()));
    var time = new NumberAxis("median time of an iteration (" + scale.unit() + ")");
    double margin = HEADROOM * Math.max(scale.from(largest - smallest), scale.from(largest) * 0.05);
    time.setRange(Math.max(0, scale.from(smallest) - margin), scale.from(largest) + margin);
    var plot = new XYPlot(data, new SplitsAxis("splits", splits), time, renderer(lines.size()));
    ring(plot, 1, best, Theme.BEST, Theme.RING);
    ring(plot, 2, ties, Theme.REFERENCE, Theme.HAIRLINE);
    plot.setDatasetRenderingOrder(DatasetRenderingOrder.FORWARD);
    addUnfused(plot, standings.unfused(), scale);
    var chart =
        Theme.chart(
            standings.finding(),
            standings.setting() + "\n" + standings.basis() + "; bars p10 to p90",
            plot);
    Theme.legend(chart);
    return chart;
  }

  /// The reference is named here: beside its line a label would lie on points or cost plot width.
  private static LegendItemCollection legend(XYPlot plot, Spread unfused) {
    var items = new LegendItemCollection();
    var name = "unfused " + TimeScale.format(unfused.medianNanos());
    items.add(new LegendItem(name, null, null, null, Theme.DASH, Theme.DASHED, Theme.REFERENCE));
    items.addAll(plot.getLegendItems());
    return items;
  }

  /// The configurations in lines, by all their settings but the splits.
  private static SequencedMap<String, List<Standing>> lines(Standings standings) {
    var lines = new LinkedHashMap<String, List<Standing>>();
    var varying = standings.varying();
    for (var standing : standings.configurations()) {
      var others = new LinkedHashMap<String, String>();
      standing
          .overlap()
          .columns()
          .forEach(
              (name, value) -> {
                if (varying.contains(name) && !name.equals("splits")) {
                  others.put(name, value);
                }
              });
      var name = others.isEmpty() ? "overlapped" : ConfigurationColumns.label(others);
      lines.computeIfAbsent(name, n -> new ArrayList<>()).add(standing);
    }
    return lines;
  }

  private static XYErrorRenderer renderer(int lines) {
    var renderer = new XYErrorRenderer();
    renderer.setDefaultLinesVisible(true);
    renderer.setDrawYError(true);
    renderer.setDrawXError(false);
    renderer.setCapLength(5);
    renderer.setErrorStroke(Theme.HAIRLINE);
    for (int line = 0; line < lines; line++) {
      renderer.setSeriesPaint(line, Theme.seriesColour(line));
      renderer.setSeriesStroke(line, Theme.LINE);
      renderer.setSeriesShape(line, circle(DOT_PX));
    }
    return renderer;
  }

  private static void ring(
      XYPlot plot, int index, XYSeries points, Color colour, BasicStroke stroke) {
    if (points.isEmpty()) {
      return;
    }
    var ring = new XYLineAndShapeRenderer(false, true);
    ring.setSeriesShape(0, circle(RING_PX));
    ring.setSeriesShapesFilled(0, false);
    ring.setSeriesPaint(0, colour);
    ring.setSeriesOutlineStroke(0, stroke);
    plot.setDataset(index, new XYSeriesCollection(points));
    plot.setRenderer(index, ring);
  }

  private static Ellipse2D circle(double diameter) {
    return new Ellipse2D.Double(-diameter / 2, -diameter / 2, diameter, diameter);
  }

  private static void addUnfused(XYPlot plot, Spread unfused, TimeScale scale) {
    var band =
        new IntervalMarker(
            scale.from(unfused.p10Nanos()), scale.from(unfused.p90Nanos()), Theme.REFERENCE_BAND);
    band.setAlpha(1);
    plot.addRangeMarker(band, Layer.BACKGROUND);
    var line = new ValueMarker(scale.from(unfused.medianNanos()), Theme.REFERENCE, Theme.DASHED);
    plot.addRangeMarker(line, Layer.BACKGROUND);
    plot.setFixedLegendItems(legend(plot, unfused));
  }
}
