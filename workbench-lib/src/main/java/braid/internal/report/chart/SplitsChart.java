package braid.internal.report.chart;

import braid.internal.report.statistics.Standings;
import braid.internal.report.statistics.Standings.Standing;
import braid.internal.report.value.ConfigurationLabel;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.SequencedMap;
import java.util.TreeSet;
import org.jfree.chart.JFreeChart;
import org.jfree.chart.plot.XYPlot;
import org.jfree.data.xy.YIntervalSeries;
import org.jfree.data.xy.YIntervalSeriesCollection;

/// Time against split count: a line for each combination of the other settings, bars from p10 to
/// p90.
public final class SplitsChart {
  /// How far apart the bars of neighbouring series stand, in powers of two.
  private static final double DODGE = 0.06;

  private static final double WIDEST_DODGE = 0.4;

  private SplitsChart() {}

  /// Whether the study has lines to draw: split counts vary, most configurations have another that
  /// differs from them in nothing else, and there are colours for all lines.
  public static boolean fits(Standings standings) {
    var lines = lines(standings);
    return standings.varying().contains("splits")
        && lines.size() <= Theme.SERIES.size()
        && 2 * lines.size() <= standings.configurations().size();
  }

  public static JFreeChart of(Standings standings) {
    var lines = lines(standings);
    var marks = new StandingMarks(standings.unfused(), standings.configurations());
    var data = new YIntervalSeriesCollection();
    double dodge = Math.min(DODGE, WIDEST_DODGE / lines.size());
    double shift = -dodge * (lines.size() - 1) / 2;
    for (var line : lines.entrySet()) {
      var series = new YIntervalSeries(line.getKey());
      for (var standing : line.getValue()) {
        var time = standing.time();
        double x = SplitsAxis.position(standing.overlap().splits()) + shift;
        double y = marks.scale.from(time.medianNanos());
        series.add(x, y, marks.scale.from(time.p10Nanos()), marks.scale.from(time.p90Nanos()));
        marks.at(x, y, standing.verdict());
      }
      data.addSeries(series);
      shift += dodge;
    }

    var splits = new TreeSet<Integer>();
    standings.configurations().forEach(s -> splits.add(s.overlap().splits()));
    var plot =
        new XYPlot(
            data,
            new SplitsAxis("splits", splits),
            marks.timeAxis(),
            StandingMarks.dots(lines.size(), true));
    marks.addTo(plot, true);
    var chart =
        Theme.chart(
            standings.finding(),
            standings.setting() + "\n" + standings.basis() + "; bars p10 to p90",
            plot);
    Theme.legend(chart);
    return chart;
  }

  /// The configurations in lines, by all their settings but the splits.
  private static SequencedMap<String, List<Standing>> lines(Standings standings) {
    var lines = new LinkedHashMap<String, List<Standing>>();
    var others = new LinkedHashSet<>(standings.varying());
    others.remove("splits");
    for (var standing : standings.configurations()) {
      var settings = standing.overlap().columns();
      settings.keySet().retainAll(others);
      var name = ConfigurationLabel.keyed(settings);
      if (name.isEmpty()) {
        name = others.isEmpty() ? "overlapped" : "as usual";
      }
      lines.computeIfAbsent(name, n -> new ArrayList<>()).add(standing);
    }
    return lines;
  }
}
