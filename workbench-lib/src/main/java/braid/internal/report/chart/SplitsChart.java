package braid.internal.report.chart;

import braid.internal.report.statistics.RankedConfigurations;
import braid.internal.report.statistics.RankedConfigurations.RankedConfiguration;
import braid.internal.report.value.ConfigurationLabel;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.SequencedMap;
import java.util.SortedMap;
import java.util.TreeMap;
import org.jfree.chart.JFreeChart;
import org.jfree.chart.plot.XYPlot;
import org.jfree.data.xy.YIntervalSeries;
import org.jfree.data.xy.YIntervalSeriesCollection;

/// Time against split count: one line per combination of the other settings, with the interval of
/// each difference to the unfused reference, and the values of the fastest of each split count.
public final class SplitsChart {
  /// Distance between the bars of neighboring series, as a power of two.
  private static final double DODGE = 0.06;

  private static final double WIDEST_DODGE = 0.4;

  /// Index of the dataset of the values.
  private static final int LABELS = 3;

  private static final Comparator<RankedConfiguration> BY_TIME =
      Comparator.comparingDouble(configuration -> configuration.time().medianNanos());

  private SplitsChart() {}

  /// Returns true if the study forms lines: split counts vary, most configurations have another one
  /// that differs only in its splits, all have splits, and there are enough colours. Times that are
  /// no evidence form none, since a line shows a minimum.
  public static boolean fits(RankedConfigurations ranked) {
    var lines = lines(ranked);
    return ranked.isJudged()
        && ranked.varying().contains("splits")
        && ranked.configurations().stream().allMatch(each -> each.splits() > 0)
        && lines.size() <= Theme.SERIES.size()
        && 2 * lines.size() <= ranked.configurations().size();
  }

  public static JFreeChart of(RankedConfigurations ranked) {
    var lines = lines(ranked);
    var marks = new StudyMarks(ranked, ranked.configurations());
    var data = new YIntervalSeriesCollection();
    double dodge = Math.min(DODGE, WIDEST_DODGE / lines.size());
    var splits = new TreeMap<Integer, List<RankedConfiguration>>();
    for (var line : lines.values()) {
      for (var configuration : line) {
        splits.computeIfAbsent(configuration.splits(), _ -> new ArrayList<>()).add(configuration);
      }
    }
    var drawn = new ArrayList<ValueLabels.Mark>();
    for (var line : lines.entrySet()) {
      var series = new YIntervalSeries(line.getKey());
      for (var configuration : line.getValue()) {
        int count = configuration.splits();
        // Those of one split count stand around their tick, also if some lines have none there.
        var beside = Objects.requireNonNull(splits.get(count));
        double shift = dodge * (beside.indexOf(configuration) - (beside.size() - 1) / 2.0);
        double x = SplitsAxis.position(count) + shift;
        double y = marks.scale.from(configuration.time().medianNanos());
        double low = marks.scale.from(marks.lowNanos(configuration));
        double high = marks.scale.from(marks.highNanos(configuration));
        series.add(x, y, low, high);
        drawn.add(new ValueLabels.Mark(x, low, high));
        marks.at(x, y, configuration.standing());
      }
      data.addSeries(series);
    }
    var plot =
        new XYPlot(
            data,
            new SplitsAxis("splits", splits.navigableKeySet()),
            marks.timeAxis(),
            StudyMarks.dots(List.copyOf(lines.sequencedKeySet()), true));
    marks.addTo(plot, true);
    var labels = new ValueLabels(labels(splits, marks), drawn);
    plot.setDataset(LABELS, labels.data());
    plot.setRenderer(LABELS, labels);
    var chart =
        Theme.chart(
            ranked.finding(),
            ranked.setting()
                + "\n"
                + ranked.basis()
                + "\nlines at the dots: interval of the difference to the reference",
            plot);
    Theme.legend(chart);
    return chart;
  }

  /// Returns the values of the fastest configuration of each split count, the fastest of all first.
  private static List<ValueLabels.Label> labels(
      SortedMap<Integer, List<RankedConfiguration>> splits, StudyMarks marks) {
    record Fastest(int splits, RankedConfiguration configuration, double lowest, double highest) {}
    return splits.entrySet().stream()
        .map(
            each ->
                new Fastest(
                    each.getKey(),
                    Collections.min(each.getValue(), BY_TIME),
                    each.getValue().stream().mapToDouble(marks::lowNanos).min().orElseThrow(),
                    each.getValue().stream().mapToDouble(marks::highNanos).max().orElseThrow()))
        .sorted(Comparator.comparing(Fastest::configuration, BY_TIME))
        .map(
            each ->
                new ValueLabels.Label(
                    SplitsAxis.position(each.splits),
                    marks.scale.from(each.lowest),
                    marks.scale.from(each.highest),
                    StudyMarks.words(each.configuration)))
        .toList();
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
      var name = ConfigurationLabel.settings(settings);
      if (name.isEmpty()) {
        name = others.isEmpty() ? "overlapped" : "defaults";
      }
      lines.computeIfAbsent(name, n -> new ArrayList<>()).add(configuration);
    }
    return lines;
  }
}
