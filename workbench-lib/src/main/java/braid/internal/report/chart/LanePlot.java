package braid.internal.report.chart;

import java.awt.Color;
import java.util.List;
import org.jfree.chart.JFreeChart;
import org.jfree.chart.axis.NumberAxis;
import org.jfree.chart.axis.SymbolAxis;
import org.jfree.chart.plot.IntervalMarker;
import org.jfree.chart.plot.XYPlot;
import org.jfree.chart.ui.Layer;
import org.jfree.data.Range;
import org.jfree.data.xy.XYIntervalSeries;
import org.jfree.data.xy.XYIntervalSeriesCollection;

/// Horizontal lanes over one axis, mostly with bars of several kinds in them. It says how high it
/// must be for its lanes to be read, and no higher.
final class LanePlot extends XYPlot {
  private static final double HALF_BAR = 0.4;
  private static final int AROUND_LANES_PX = 150;
  private static final int TALLEST_LANE_PX = 44;

  private final transient int heightPx;

  /// @param label what stands in the bar where there is room; empty for nothing
  record Bar(int lane, double from, double to, String label) {}

  record Kind(String name, Color colour, Form form, List<Bar> bars) {}

  /// What a bar looks like, so that colour alone need not tell kinds apart.
  enum Form {
    /// As high as its lane lets it be.
    BLOCK,
    /// A thin line in the middle of its lane: nothing is done.
    THREAD,
    /// An upright mark where it begins, over what else is there: it takes no time to speak of.
    TICK
  }

  /// @param banded whether the lane stands on a tinted band, to tell groups of lanes apart
  record Lane(String name, boolean banded) {}

  /// Empty lanes.
  LanePlot(NumberAxis axis, List<Lane> lanes, int lanePx) {
    int usual = (Theme.HEIGHT_PX - AROUND_LANES_PX) / lanes.size();
    this.heightPx = AROUND_LANES_PX + lanes.size() * Math.clamp(usual, lanePx, TALLEST_LANE_PX);
    var laneAxis = new SymbolAxis(null, lanes.stream().map(Lane::name).toArray(String[]::new));
    laneAxis.setInverted(true);
    laneAxis.setGridBandsVisible(false);
    laneAxis.setRange(-0.5, lanes.size() - 0.5);
    laneAxis.setTickMarksVisible(false);
    setDomainAxis(axis);
    setRangeAxis(laneAxis);
    for (int lane = 0; lane < lanes.size(); lane++) {
      if (lanes.get(lane).banded) {
        var band = new IntervalMarker(lane - 0.5, lane + 0.5, Theme.BAND);
        band.setAlpha(1);
        addRangeMarker(band, Layer.BACKGROUND);
      }
    }
  }

  /// Lanes with bars, from 0 to `longest`.
  static LanePlot of(
      String axisLabel, double longest, List<Lane> lanes, int lanePx, List<Kind> kinds) {
    var axis = new NumberAxis(axisLabel);
    axis.setRange(new Range(0, longest));
    var plot = new LanePlot(axis, lanes, lanePx);
    var dataset = new XYIntervalSeriesCollection();
    for (var kind : kinds) {
      var series = new XYIntervalSeries(kind.name, false, true);
      for (var bar : kind.bars) {
        int lane = bar.lane;
        series.add(bar.from, bar.from, bar.to, lane, lane - HALF_BAR, lane + HALF_BAR);
      }
      dataset.addSeries(series);
    }
    plot.setDataset(dataset);
    plot.setRenderer(new LaneBars(kinds));
    return plot;
  }

  /// @param ruled whether a line leads from each lane's name to what is in it
  JFreeChart chart(String title, String subtitle, boolean ruled) {
    var chart = Theme.chart(title, subtitle, this);
    setRangeGridlinesVisible(ruled);
    Theme.legend(chart);
    return chart;
  }

  int heightPx() {
    return heightPx;
  }
}
