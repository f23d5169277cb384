package braid.internal.report.chart;

import braid.internal.report.statistics.RankTimes;
import braid.internal.report.value.ConfigurationLabel;
import braid.internal.report.value.TimeScale;
import braid.model.Profile;
import braid.model.Stage;
import java.awt.Color;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToDoubleFunction;
import org.jfree.chart.JFreeChart;

/// One bar per rank's mean iteration: only multiplying, both at once, only communicating (copying
/// or reducing), only rank-local copies if there are any, idle.
public final class BreakdownChart {
  private static final int LANE_PX = 34;

  private record Part(String name, Color colour, ToDoubleFunction<RankTimes> nanos) {}

  private static final String LOCAL_ONLY = "rank-local copies only";

  private static final List<Part> PARTS =
      List.of(
          new Part("gemm only", Theme.colour(Stage.GEMM), t -> t.either() - t.communication()),
          new Part("gemm and communication", Theme.BOTH, RankTimes::overlapped),
          new Part("communication only", Theme.colour(Stage.COPY), t -> t.either() - t.gemm()),
          new Part(LOCAL_ONLY, Theme.colour(Stage.LOCAL), RankTimes::localOnly),
          new Part("idle", Theme.colour(Stage.WAIT), RankTimes::idle));

  private BreakdownChart() {}

  public static JFreeChart of(List<Profile> ofRanks) {
    var ranks = ofRanks.stream().map(RankTimes::of).toList();
    double longest =
        ranks.stream().mapToDouble(t -> Math.max(t.iteration(), t.working())).max().orElse(1);
    var scale = TimeScale.of(longest);
    var groups = new ArrayList<LanePlot.BarGroup>();
    var from = new double[ranks.size()];
    for (var part : PARTS) {
      var bars = new ArrayList<LanePlot.Bar>();
      for (int lane = 0; lane < ranks.size(); lane++) {
        double length = scale.from(part.nanos.applyAsDouble(ranks.get(lane)));
        if (length > 0) {
          bars.add(
              new LanePlot.Bar(lane, from[lane], from[lane] + length, TimeScale.digits(length)));
          from[lane] += length;
        }
      }
      if (!part.name.equals(LOCAL_ONLY) || !bars.isEmpty()) {
        groups.add(new LanePlot.BarGroup(part.name, part.colour, LanePlot.Form.BLOCK, bars));
      }
    }
    var plot =
        LanePlot.of(
            "mean iteration (" + scale.unit() + ")",
            scale.from(Math.max(longest, 1)),
            ranks.stream().map(t -> new LanePlot.Lane("rank " + t.rank(), false)).toList(),
            LANE_PX,
            groups);
    return plot.chart(
        title(ranks), ConfigurationLabel.of(ofRanks.getFirst().configuration()), false);
  }

  private static String title(List<RankTimes> ranks) {
    double idle = 0;
    double alone = 0;
    double wall = 0;
    for (var times : ranks) {
      idle += times.idle();
      alone += times.either() - times.gemm();
      wall += times.iteration();
    }
    var rest = TimeScale.percent(idle / wall) + " is idle";
    if (ranks.stream().allMatch(times -> times.communication() == 0)) {
      return "Nothing is communicated; " + rest;
    }
    return TimeScale.percent(alone / wall)
        + " of an iteration is communication that no GEMM hides; "
        + rest;
  }
}
