package braid.internal.report.chart;

import braid.internal.report.statistics.Standings;
import braid.internal.report.statistics.Standings.Standing;
import braid.internal.report.value.ConfigurationLabel;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedSet;
import org.jfree.chart.JFreeChart;
import org.jfree.data.xy.XYIntervalSeries;
import org.jfree.data.xy.XYIntervalSeriesCollection;

/// A dot for each configuration on a line of its own, the fastest at the top, bars from p10 to p90:
/// for configurations that differ in more, or in other things, than their split count.
public final class ConfigurationsChart {
  /// More than these are in the table; further down there is nothing to choose from.
  static final int MOST_SHOWN = 40;

  private static final int LANE_PX = 20;

  private ConfigurationsChart() {}

  public static JFreeChart of(Standings standings) {
    int all = standings.configurations().size();
    var shown =
        standings.configurations().stream()
            .sorted(Comparator.comparingDouble(standing -> standing.time().medianNanos()))
            .limit(MOST_SHOWN)
            .toList();
    var marks = new StandingMarks(standings.unfused(), shown);
    var times = new XYIntervalSeries("median, bars p10 to p90", false, true);
    for (int lane = 0; lane < shown.size(); lane++) {
      var standing = shown.get(lane);
      var time = standing.time();
      double median = marks.scale.from(time.medianNanos());
      times.add(
          median,
          marks.scale.from(time.p10Nanos()),
          marks.scale.from(time.p90Nanos()),
          lane,
          lane,
          lane);
      marks.at(median, lane, standing.verdict());
    }
    var data = new XYIntervalSeriesCollection();
    data.addSeries(times);
    var plot = new LanePlot(marks.timeAxis(), lanes(shown, standings.varying()), LANE_PX);
    plot.setDataset(data);
    plot.setRenderer(StandingMarks.dots(1, false));
    marks.addTo(plot, false);
    var subtitle = new StringBuilder(standings.setting());
    var common = new LinkedHashMap<>(shown.getFirst().overlap().columns());
    common.keySet().removeAll(standings.varying());
    if (!common.isEmpty()) {
      subtitle.append("\nall with ").append(ConfigurationLabel.of(common));
    }
    subtitle.append('\n').append(standings.basis());
    if (all > shown.size()) {
      subtitle.append("; the fastest ").append(shown.size()).append(" of ").append(all);
    }
    return plot.chart(standings.finding(), subtitle.toString(), true);
  }

  private static List<LanePlot.Lane> lanes(List<Standing> shown, SequencedSet<String> varying) {
    return shown.stream()
        .map(s -> ConfigurationLabel.distinguishing(s.overlap(), varying))
        .map(name -> new LanePlot.Lane(name, false))
        .toList();
  }
}
