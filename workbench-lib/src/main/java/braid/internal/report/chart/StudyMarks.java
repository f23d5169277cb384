package braid.internal.report.chart;

import braid.internal.report.statistics.RankedConfigurations;
import braid.internal.report.statistics.RankedConfigurations.RankedConfiguration;
import braid.internal.report.statistics.RankedConfigurations.Standing;
import braid.internal.report.statistics.RankedConfigurations.Verdict;
import braid.internal.report.statistics.Spread;
import braid.internal.report.value.ConfigurationLabel;
import braid.internal.report.value.Percent;
import braid.internal.report.value.TimeScale;
import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.geom.Ellipse2D;
import java.util.List;
import org.jfree.chart.LegendItem;
import org.jfree.chart.LegendItemCollection;
import org.jfree.chart.axis.NumberAxis;
import org.jfree.chart.plot.DatasetRenderingOrder;
import org.jfree.chart.plot.ValueMarker;
import org.jfree.chart.plot.XYPlot;
import org.jfree.chart.renderer.xy.XYErrorRenderer;
import org.jfree.chart.renderer.xy.XYLineAndShapeRenderer;
import org.jfree.chart.ui.Layer;
import org.jfree.data.xy.XYSeries;
import org.jfree.data.xy.XYSeriesCollection;

/// Marks that all charts of a study share: a dot at each median with the interval of its difference
/// to the unfused reference, a ring around the best and a lighter one around its equals, and the
/// reference, dashed.
final class StudyMarks {
  static final double DOT_PX = 6;
  private static final double RING_PX = 15;
  private static final float CAP_PX = 5;
  private static final double HEADROOM = 0.12;
  private static final BasicStroke INTERVAL = new BasicStroke(1.6f);

  /// Minimum spread of the axis, as a share, so that noise does not fill it.
  private static final double LEAST_SPREAD = 0.05;

  final TimeScale scale;
  private final String reference;
  private final Spread unfused;
  private final double smallest;
  private final double largest;
  private final XYSeries best = new XYSeries("best");
  private final XYSeries equalToBest = new XYSeries("equal to best");

  StudyMarks(RankedConfigurations ranked, List<RankedConfiguration> shown) {
    unfused = ranked.unfused();
    reference = ConfigurationLabel.reference(ranked.reference());
    double most = unfused.medianNanos();
    double least = unfused.medianNanos();
    for (var configuration : shown) {
      most = Math.max(most, highNanos(configuration));
      least = Math.min(least, lowNanos(configuration));
    }
    this.largest = most;
    this.smallest = least;
    this.scale = TimeScale.of(most);
  }

  /// Returns the time at the lower end of the interval of the difference to the reference. Times
  /// that are no evidence have the range of their rounds instead.
  double lowNanos(RankedConfiguration configuration) {
    return configuration.verdict() == Verdict.UNJUDGED
        ? configuration.time().p10Nanos()
        : unfused.medianNanos() * (1 + configuration.excess().low());
  }

  /// Returns the time at the upper end of that interval.
  double highNanos(RankedConfiguration configuration) {
    return configuration.verdict() == Verdict.UNJUDGED
        ? configuration.time().p90Nanos()
        : unfused.medianNanos() * (1 + configuration.excess().high());
  }

  /// Returns median and difference to the reference: "83.0 ms", "−19.5% (−20.9 to −17.9)"; of a
  /// time that is no evidence, median and prediction.
  static List<String> words(RankedConfiguration configuration) {
    if (configuration.verdict() == Verdict.UNJUDGED) {
      var predicted = configuration.predictedNanos();
      return List.of(
          TimeScale.format(configuration.time().medianNanos()),
          predicted.isPresent() ? "predicted " + TimeScale.format(predicted.getAsDouble()) : "");
    }
    var excess = configuration.excess();
    return List.of(
        TimeScale.format(configuration.time().medianNanos()),
        "%s (%s)".formatted(Percent.change(excess), Percent.interval(excess)));
  }

  /// Returns an axis for all times, including the reference's.
  NumberAxis timeAxis() {
    var time = new NumberAxis("median time of an iteration (" + scale.unit() + ")");
    double spread = Math.max(scale.from(largest - smallest), scale.from(largest) * LEAST_SPREAD);
    double margin = HEADROOM * spread;
    time.setRange(Math.max(0, scale.from(smallest) - 3 * margin), scale.from(largest) + margin);
    return time;
  }

  /// Returns dots with error bars in each series' colour, joined by lines if series have several
  /// dots.
  static XYErrorRenderer dots(List<String> series, boolean joined) {
    var renderer = new XYErrorRenderer();
    renderer.setDefaultLinesVisible(joined);
    renderer.setDrawYError(joined);
    renderer.setDrawXError(!joined);
    renderer.setCapLength(CAP_PX);
    renderer.setErrorStroke(INTERVAL);
    var colours = Theme.seriesColours(series);
    for (int line = 0; line < colours.size(); line++) {
      renderer.setSeriesPaint(line, colours.get(line));
      renderer.setSeriesStroke(line, Theme.LINE);
      renderer.setSeriesShape(line, circle(DOT_PX));
    }
    return renderer;
  }

  /// Records a point for the rings.
  void at(double x, double y, Standing standing) {
    switch (standing) {
      case BEST -> best.add(x, y);
      case EQUAL -> equalToBest.add(x, y);
      case UNDECIDED, BEHIND -> {}
    }
  }

  /// Draws rings and reference onto a plot whose first dataset has the dots.
  ///
  /// @param timeUpwards true if time is the range axis
  void addTo(XYPlot plot, boolean timeUpwards) {
    ring(plot, 1, best, Theme.BEST, Theme.RING);
    ring(plot, 2, equalToBest, Theme.REFERENCE, Theme.HAIRLINE);
    plot.setDatasetRenderingOrder(DatasetRenderingOrder.FORWARD);
    var line = new ValueMarker(scale.from(unfused.medianNanos()), Theme.REFERENCE, Theme.DASHED);
    if (timeUpwards) {
      plot.addRangeMarker(line, Layer.BACKGROUND);
    } else {
      plot.addDomainMarker(line, Layer.BACKGROUND);
    }
    plot.setFixedLegendItems(legend(plot));
  }

  /// Returns legend items that name the reference: a label beside its line would cover points or
  /// narrow the plot.
  private LegendItemCollection legend(XYPlot plot) {
    var items = new LegendItemCollection();
    var name = reference + " " + TimeScale.format(unfused.medianNanos());
    items.add(new LegendItem(name, null, null, null, Theme.DASH, Theme.DASHED, Theme.REFERENCE));
    items.addAll(plot.getLegendItems());
    return items;
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
}
