package braid.internal.report.chart;

import braid.internal.report.statistics.RankedConfigurations;
import braid.internal.report.statistics.RankedConfigurations.RankedConfiguration;
import braid.internal.report.value.ConfigurationLabel;
import java.util.Comparator;
import java.util.List;
import java.util.SequencedSet;
import org.jfree.chart.JFreeChart;
import org.jfree.data.xy.XYIntervalSeries;
import org.jfree.data.xy.XYIntervalSeriesCollection;

/// One dot per configuration, each on its own line with its values beside it, the fastest at the
/// top: for configurations that differ in more than their split count. Configurations whose times
/// are no evidence keep the order of the study.
public final class ConfigurationsChart {
  /// Configurations shown; the table has the slower ones.
  static final int MOST_SHOWN = 40;

  private static final int LANE_PX = 20;
  private static final String NAME = "median, and interval of the difference to the reference";
  private static final String UNJUDGED_NAME = "median, and p10 to p90";

  private ConfigurationsChart() {}

  public static JFreeChart of(RankedConfigurations ranked) {
    int all = ranked.configurations().size();
    boolean judged = ranked.isJudged();
    Comparator<RankedConfiguration> byTime =
        Comparator.comparingDouble(configuration -> configuration.time().medianNanos());
    var shown =
        ranked.configurations().stream()
            .sorted(judged ? byTime : (_, _) -> 0)
            .limit(MOST_SHOWN)
            .toList();
    var marks = new StudyMarks(ranked, shown);
    var name = judged ? NAME : UNJUDGED_NAME;
    var times = new XYIntervalSeries(name, false, true);
    for (int lane = 0; lane < shown.size(); lane++) {
      var configuration = shown.get(lane);
      double median = marks.scale.from(configuration.time().medianNanos());
      times.add(
          median,
          marks.scale.from(marks.lowNanos(configuration)),
          marks.scale.from(marks.highNanos(configuration)),
          lane,
          lane,
          lane);
      marks.at(median, lane, configuration.standing());
    }
    var data = new XYIntervalSeriesCollection();
    data.addSeries(times);
    var plot = new LanePlot(marks.timeAxis(), lanes(shown, ranked.varying()), LANE_PX);
    plot.setDataset(data);
    plot.setRenderer(StudyMarks.dots(List.of(name), false));
    marks.addTo(plot, false);
    plot.beside(shown.stream().map(each -> String.join("  ", StudyMarks.words(each))).toList());
    var subtitle = new StringBuilder(ranked.shared());
    subtitle.append('\n').append(ranked.basis());
    if (all > shown.size()) {
      subtitle
          .append(judged ? "; the fastest " : "; the first ")
          .append(shown.size())
          .append(" of ")
          .append(all);
    }
    return plot.chart(ranked.finding(), subtitle.toString(), true);
  }

  private static List<LanePlot.Lane> lanes(
      List<RankedConfiguration> shown, SequencedSet<String> varying) {
    return shown.stream()
        .map(s -> ConfigurationLabel.distinguishing(s.configuration(), varying))
        .map(name -> new LanePlot.Lane(name, false))
        .toList();
  }
}
