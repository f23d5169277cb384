package braid.internal.report.chart;

import braid.internal.report.statistics.RankedConfigurations;
import braid.internal.report.statistics.RankedConfigurations.RankedConfiguration;
import braid.internal.report.statistics.RankedConfigurations.Verdict;
import braid.internal.report.value.ConfigurationLabel;
import braid.internal.report.value.TimeScale;
import braid.model.Spread;
import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.geom.Ellipse2D;
import java.util.List;
import org.jfree.chart.LegendItem;
import org.jfree.chart.LegendItemCollection;
import org.jfree.chart.axis.NumberAxis;
import org.jfree.chart.plot.DatasetRenderingOrder;
import org.jfree.chart.plot.IntervalMarker;
import org.jfree.chart.plot.Marker;
import org.jfree.chart.plot.ValueMarker;
import org.jfree.chart.plot.XYPlot;
import org.jfree.chart.renderer.xy.XYErrorRenderer;
import org.jfree.chart.renderer.xy.XYLineAndShapeRenderer;
import org.jfree.chart.ui.Layer;
import org.jfree.data.xy.XYSeries;
import org.jfree.data.xy.XYSeriesCollection;

/// Marks that all charts of a study share: a dot at each median, a ring around the best and a
/// lighter one around its ties, and the unfused reference, dashed on a band from p10 to p90.
final class StudyMarks {
  static final double DOT_PX = 6;
  private static final double RING_PX = 15;
  private static final float CAP_PX = 5;
  private static final double HEADROOM = 0.12;

  /// Minimum spread of the axis, as a share, so that noise does not fill it.
  private static final double LEAST_SPREAD = 0.05;

  final TimeScale scale;
  private final String reference;
  private final Spread unfused;
  private final double smallest;
  private final double largest;
  private final XYSeries best = new XYSeries("best");
  private final XYSeries ties = new XYSeries("ties with best");

  StudyMarks(RankedConfigurations ranked, List<RankedConfiguration> shown) {
    unfused = ranked.unfused();
    reference = ConfigurationLabel.reference(ranked.reference());
    double p90 = unfused.p90Nanos();
    double p10 = unfused.p10Nanos();
    for (var configuration : shown) {
      p90 = Math.max(p90, configuration.time().p90Nanos());
      p10 = Math.min(p10, configuration.time().p10Nanos());
    }
    this.largest = p90;
    this.smallest = p10;
    this.scale = TimeScale.of(p90);
  }

  /// Returns an axis for all times, including the reference's.
  NumberAxis timeAxis() {
    var time = new NumberAxis("median time of an iteration (" + scale.unit() + ")");
    double spread = Math.max(scale.from(largest - smallest), scale.from(largest) * LEAST_SPREAD);
    double margin = HEADROOM * spread;
    time.setRange(Math.max(0, scale.from(smallest) - margin), scale.from(largest) + margin);
    return time;
  }

  /// Returns dots with error bars in each series' colour, joined by lines if series have several
  /// dots.
  static XYErrorRenderer dots(int series, boolean joined) {
    var renderer = new XYErrorRenderer();
    renderer.setDefaultLinesVisible(joined);
    renderer.setDrawYError(joined);
    renderer.setDrawXError(!joined);
    renderer.setCapLength(CAP_PX);
    renderer.setErrorStroke(Theme.HAIRLINE);
    for (int line = 0; line < series; line++) {
      renderer.setSeriesPaint(line, Theme.seriesColour(line));
      renderer.setSeriesStroke(line, Theme.LINE);
      renderer.setSeriesShape(line, circle(DOT_PX));
    }
    return renderer;
  }

  /// Records a point for the rings.
  void at(double x, double y, Verdict verdict) {
    switch (verdict) {
      case BEST -> best.add(x, y);
      case TIED -> ties.add(x, y);
      case SLOWER -> {}
    }
  }

  /// Draws rings and reference onto a plot whose first dataset has the dots.
  ///
  /// @param timeUpwards true if time is the range axis
  void addTo(XYPlot plot, boolean timeUpwards) {
    ring(plot, 1, best, Theme.BEST, Theme.RING);
    ring(plot, 2, ties, Theme.REFERENCE, Theme.HAIRLINE);
    plot.setDatasetRenderingOrder(DatasetRenderingOrder.FORWARD);
    var band =
        new IntervalMarker(
            scale.from(unfused.p10Nanos()), scale.from(unfused.p90Nanos()), Theme.REFERENCE_BAND);
    band.setAlpha(1);
    mark(plot, band, timeUpwards);
    var line = new ValueMarker(scale.from(unfused.medianNanos()), Theme.REFERENCE, Theme.DASHED);
    mark(plot, line, timeUpwards);
    plot.setFixedLegendItems(legend(plot));
  }

  private static void mark(XYPlot plot, Marker marker, boolean timeUpwards) {
    if (timeUpwards) {
      plot.addRangeMarker(marker, Layer.BACKGROUND);
    } else {
      plot.addDomainMarker(marker, Layer.BACKGROUND);
    }
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
