package braid.internal.report.chart;

import braid.internal.report.statistics.RankedConfigurations;
import braid.internal.report.statistics.RankedConfigurations.RankedConfiguration;
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

/// Time against split count: one line per combination of the other settings, bars from p10 to p90.
public final class SplitsChart {
  /// Distance between the bars of neighbouring series, as a power of two.
  private static final double DODGE = 0.06;

  private static final double WIDEST_DODGE = 0.4;

  private SplitsChart() {}

  /// Returns true if the study forms lines: split counts vary, most configurations have another one
  /// that differs only in its splits, and there are enough colours.
  public static boolean fits(RankedConfigurations ranked) {
    var lines = lines(ranked);
    return ranked.varying().contains("splits")
        && lines.size() <= Theme.SERIES.size()
        && 2 * lines.size() <= ranked.configurations().size();
  }

  public static JFreeChart of(RankedConfigurations ranked) {
    var lines = lines(ranked);
    var marks = new StudyMarks(ranked, ranked.configurations());
    var data = new YIntervalSeriesCollection();
    double dodge = Math.min(DODGE, WIDEST_DODGE / lines.size());
    double shift = -dodge * (lines.size() - 1) / 2;
    for (var line : lines.entrySet()) {
      var series = new YIntervalSeries(line.getKey());
      for (var configuration : line.getValue()) {
        var time = configuration.time();
        double x = SplitsAxis.position(configuration.overlap().splits()) + shift;
        double y = marks.scale.from(time.medianNanos());
        series.add(x, y, marks.scale.from(time.p10Nanos()), marks.scale.from(time.p90Nanos()));
        marks.at(x, y, configuration.verdict());
      }
      data.addSeries(series);
      shift += dodge;
    }

    var splits = new TreeSet<Integer>();
    ranked.configurations().forEach(s -> splits.add(s.overlap().splits()));
    var plot =
        new XYPlot(
            data,
            new SplitsAxis("splits", splits),
            marks.timeAxis(),
            StudyMarks.dots(lines.size(), true));
    marks.addTo(plot, true);
    var chart =
        Theme.chart(
            ranked.finding(), ranked.setting() + "\n" + ranked.basis() + "; bars p10 to p90", plot);
    Theme.legend(chart);
    return chart;
  }

  /// Groups the configurations into lines, by all settings except the splits.
  private static SequencedMap<String, List<RankedConfiguration>> lines(
      RankedConfigurations ranked) {
    var lines = new LinkedHashMap<String, List<RankedConfiguration>>();
    var others = new LinkedHashSet<>(ranked.varying());
    others.remove("splits");
    for (var configuration : ranked.configurations()) {
      var settings = configuration.configuration().columns();
      settings.keySet().retainAll(others);
      var name = ConfigurationLabel.keyed(settings);
      if (name.isEmpty()) {
        name = others.isEmpty() ? "overlapped" : "defaults";
      }
      lines.computeIfAbsent(name, n -> new ArrayList<>()).add(configuration);
    }
    return lines;
  }
}
