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

/// Horizontal lanes over one axis, usually with groups of bars. Its height is what its lanes need
/// to be readable, and no more.
final class LanePlot extends XYPlot implements ChartImage.Tall {
  private static final double HALF_BAR = 0.4;
  private static final int AROUND_LANES_PX = 150;
  private static final int TALLEST_LANE_PX = 44;

  private final transient int heightPx;

  /// @param labels texts for the inside of the bar, the longest first; all bars of a lane show the
  ///   longest for which they have room
  record Bar(int lane, double from, double to, List<String> labels) {}

  /// @param name name in the legend; empty for none
  record BarGroup(String name, Color colour, Form form, List<Bar> bars) {}

  /// Forms of bars, so that groups differ not only by colour.
  enum Form {
    /// Full height of the lane.
    BLOCK,
    /// A thin line in the middle of the lane: the rank does no work.
    THREAD,
    /// An upright mark at its start, above other bars: its duration is negligible.
    TICK,
    /// A line across the lane at its start.
    EDGE,
    /// A background across the lane.
    BACKGROUND,
    /// Only its label.
    LABEL
  }

  /// @param banded true for a tinted background, which separates groups of lanes
  record Lane(String name, boolean banded) {}

  /// Creates empty lanes.
  LanePlot(NumberAxis axis, List<Lane> lanes, int lanePx) {
    int even = (Theme.HEIGHT_PX - AROUND_LANES_PX) / lanes.size();
    this.heightPx = AROUND_LANES_PX + lanes.size() * Math.clamp(even, lanePx, TALLEST_LANE_PX);
    setDomainAxis(axis);
    setRangeAxis(laneAxis(lanes.stream().map(Lane::name).toList()));
    for (int lane = 0; lane < lanes.size(); lane++) {
      if (lanes.get(lane).banded) {
        var band = new IntervalMarker(lane - 0.5, lane + 0.5, Theme.BAND);
        band.setAlpha(1);
        addRangeMarker(band, Layer.BACKGROUND);
      }
    }
  }

  /// Returns lanes with bars, from 0 to `longest`.
  static LanePlot of(
      String axisLabel, double longest, List<Lane> lanes, int lanePx, List<BarGroup> groups) {
    var axis = new NumberAxis(axisLabel);
    axis.setRange(new Range(0, longest));
    var plot = new LanePlot(axis, lanes, lanePx);
    var dataset = new XYIntervalSeriesCollection();
    for (var group : groups) {
      var series = new XYIntervalSeries(group.name, false, true);
      for (var bar : group.bars) {
        int lane = bar.lane;
        double half = group.form == Form.EDGE || group.form == Form.BACKGROUND ? 0.5 : HALF_BAR;
        series.add(bar.from, bar.from, bar.to, lane, lane - half, lane + half);
      }
      dataset.addSeries(series);
    }
    plot.setDataset(dataset);
    plot.setRenderer(new LaneBars(groups));
    return plot;
  }

  /// Writes a text for each lane beside the plot.
  void beside(List<String> texts) {
    var axis = laneAxis(texts);
    Theme.style(axis);
    axis.setAxisLineVisible(false);
    axis.setTickLabelFont(Theme.SMALL);
    setRangeAxis(1, axis);
  }

  private static SymbolAxis laneAxis(List<String> names) {
    var axis = new SymbolAxis(null, names.toArray(String[]::new));
    axis.setInverted(true);
    axis.setGridBandsVisible(false);
    axis.setRange(-0.5, names.size() - 0.5);
    axis.setTickMarksVisible(false);
    return axis;
  }

  /// @param ruled true for a line from each lane's name to its items
  JFreeChart chart(String title, String subtitle, boolean ruled) {
    var chart = Theme.chart(title, subtitle, this);
    setRangeGridlinesVisible(ruled);
    Theme.legend(chart);
    return chart;
  }

  @Override
  public int heightPx() {
    return heightPx;
  }
}
