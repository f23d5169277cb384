package braid.internal.report.chart;

import braid.internal.report.statistics.RankTimes;
import braid.internal.report.value.Caveats;
import braid.internal.report.value.ConfigurationLabel;
import braid.internal.report.value.TimeScale;
import braid.model.Profile;
import braid.model.Stage;
import java.awt.Color;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;
import org.jfree.chart.JFreeChart;

/// Time of an iteration by what it was spent on: exposed communication, communication and computing
/// at once, computing only, rank-local copies only if there are any, idle. One bar per rank, or per
/// configuration.
public final class BreakdownChart {
  private static final int LANE_PX = 30;

  private record Part(String name, Color colour, ToDoubleFunction<RankTimes> nanos) {}

  private static final String LOCAL_ONLY = "rank-local copies only";

  /// @param compute what the ranks compute
  private static List<Part> parts(String compute) {
    return List.of(
        new Part("exposed communication", Theme.colour(Stage.COPY), RankTimes::exposed),
        new Part("communication and " + compute, Theme.BOTH, RankTimes::overlapped),
        new Part(
            compute + " only",
            Theme.colour(compute.equals("attention") ? Stage.ATTENTION : Stage.GEMM),
            RankTimes::computeOnly),
        new Part(LOCAL_ONLY, Theme.colour(Stage.LOCAL), RankTimes::localOnly),
        new Part("idle", Theme.colour(Stage.WAIT), RankTimes::idle));
  }

  private BreakdownChart() {}

  /// Returns one bar per rank of a configuration.
  public static JFreeChart of(List<Profile> ofRanks) {
    var ranks = ofRanks.stream().map(RankTimes::of).toList();
    return of(
        ofRanks.stream().map(Profile::rankName).toList(),
        ranks,
        Caveats.timesCount(ofRanks.getFirst().configuration())
            ? title(ranks)
            : "Work of a mean iteration",
        ConfigurationLabel.of(ofRanks.getFirst().configuration()),
        "mean iteration");
  }

  /// Returns one bar per configuration: the rank with the most exposed communication, in the
  /// iteration where that is the median, as tables and headlines have it.
  ///
  /// @param names a name for each configuration
  /// @param sets the profiles of all ranks of each configuration
  public static JFreeChart ofConfigurations(
      List<String> names, List<List<Profile>> sets, String setting) {
    return of(
        names,
        sets.stream().map(BreakdownChart::mostExposed).toList(),
        "What the time of a median iteration was spent on, rank with the most exposed",
        setting,
        "iteration");
  }

  private static RankTimes mostExposed(List<Profile> ofRanks) {
    int iterations = ofRanks.getFirst().iterationNanos().size();
    var byExposed = Comparator.comparingDouble(RankTimes::exposed);
    return IntStream.range(0, iterations)
        .mapToObj(
            iteration ->
                ofRanks.stream()
                    .map(profile -> RankTimes.of(profile, iteration))
                    .max(byExposed)
                    .orElseThrow())
        .sorted(byExposed)
        .skip((iterations - 1) / 2)
        .findFirst()
        .orElseThrow();
  }

  private static JFreeChart of(
      List<String> names, List<RankTimes> bars, String title, String subtitle, String axis) {
    double longest =
        bars.stream().mapToDouble(t -> Math.max(t.iteration(), t.working())).max().orElse(1);
    var scale = TimeScale.of(longest);
    var groups = new ArrayList<LanePlot.BarGroup>();
    var from = new double[bars.size()];
    for (var part : parts(RankTimes.compute(bars))) {
      var own = new ArrayList<LanePlot.Bar>();
      for (int lane = 0; lane < bars.size(); lane++) {
        double length = scale.from(part.nanos.applyAsDouble(bars.get(lane)));
        if (length > 0) {
          var digits = TimeScale.digits(length);
          var texts = List.of(digits + " " + scale.unit(), digits);
          own.add(new LanePlot.Bar(lane, from[lane], from[lane] + length, texts));
          from[lane] += length;
        }
      }
      if (!part.name.equals(LOCAL_ONLY) || !own.isEmpty()) {
        groups.add(new LanePlot.BarGroup(part.name, part.colour, LanePlot.Form.BLOCK, own));
      }
    }
    var plot =
        LanePlot.of(
            "%s (%s)".formatted(axis, scale.unit()),
            scale.from(Math.max(longest, 1)),
            names.stream().map(name -> new LanePlot.Lane(name, false)).toList(),
            LANE_PX,
            groups);
    return plot.chart(title, subtitle, false);
  }

  private static String title(List<RankTimes> ranks) {
    double idle = 0;
    double exposed = 0;
    double wall = 0;
    for (var times : ranks) {
      idle += times.idle();
      exposed += times.exposed();
      wall += times.iteration();
    }
    var rest = TimeScale.percent(idle / wall) + " is idle";
    if (ranks.stream().allMatch(times -> times.communication() == 0)) {
      return "Nothing is communicated; " + rest;
    }
    return TimeScale.percent(exposed / wall)
        + " of an iteration is exposed communication, which no %s hides; "
            .formatted(RankTimes.compute(ranks))
        + rest;
  }
}
