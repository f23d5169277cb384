package braid.internal.report.chart;

import braid.internal.report.statistics.RankTimes;
import braid.internal.report.statistics.StreamOrder;
import braid.internal.report.value.ConfigurationLabel;
import braid.internal.report.value.TimeScale;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.SequencedCollection;
import java.util.SequencedMap;
import java.util.stream.Collectors;
import org.jfree.chart.JFreeChart;

/// One iteration of all ranks on one time axis: one lane per stream of a rank, one bar per span.
public final class TimelineChart {
  private static final int LANE_PX = 20;

  /// Number of lanes from which they are as low as their labels allow.
  private static final int MANY_LANES = 48;

  private static final int LOW_LANE_PX = 15;

  /// The iteration to draw.
  ///
  /// @param median true if its time is the median of all
  /// @param clockErrorNanos largest error of position between spans of two ranks
  public record Shown(int iteration, long slowestNanos, boolean median, long clockErrorNanos) {}

  private record Lane(int rank, String stream) {}

  private TimelineChart() {}

  public static JFreeChart of(List<Profile> ofRanks, Shown shown) {
    var spansByRank = new LinkedHashMap<Integer, List<Span>>();
    for (var profile : ofRanks) {
      spansByRank.put(
          profile.place().rank(),
          profile.spans().stream().filter(s -> s.iteration() == shown.iteration).toList());
    }
    var all = spansByRank.values().stream().flatMap(List::stream).toList();
    long start = all.stream().mapToLong(Span::startNanos).min().orElse(0);
    long end = all.stream().mapToLong(Span::endNanos).max().orElse(0);
    long shownNanos = Math.max(1, Math.max(shown.slowestNanos, end - start));
    var scale = TimeScale.of(shownNanos);

    var lanes = lanes(StreamOrder.of(ofRanks), spansByRank);
    var plot =
        LanePlot.of(
            "time (" + scale.unit() + ")",
            scale.from(shownNanos),
            named(lanes.sequencedKeySet()),
            lanes.size() < MANY_LANES ? LANE_PX : LOW_LANE_PX,
            bars(spansByRank, lanes, start, scale));
    return plot.chart(title(ofRanks, shown), subtitle(ofRanks.getFirst(), shown), false);
  }

  private static SequencedMap<Lane, Integer> lanes(
      List<String> order, SequencedMap<Integer, List<Span>> spansByRank) {
    var lanes = new LinkedHashMap<Lane, Integer>();
    spansByRank.forEach(
        (rank, spans) -> {
          var used = spans.stream().map(Span::stream).collect(Collectors.toSet());
          order.stream()
              .filter(used::contains)
              .forEach(stream -> lanes.put(new Lane(rank, stream), lanes.size()));
        });
    return lanes;
  }

  /// Names lanes by stream; the first lane of a rank also names the rank.
  private static List<LanePlot.Lane> named(SequencedCollection<Lane> lanes) {
    var named = new ArrayList<LanePlot.Lane>();
    int before = -1;
    for (var lane : lanes) {
      var name = lane.rank == before ? lane.stream : "rank " + lane.rank + "  " + lane.stream;
      named.add(new LanePlot.Lane(name, lane.rank % 2 == 1));
      before = lane.rank;
    }
    return named;
  }

  private static List<LanePlot.BarGroup> bars(
      SequencedMap<Integer, List<Span>> spansByRank,
      SequencedMap<Lane, Integer> lanes,
      long start,
      TimeScale scale) {
    var groups = new ArrayList<LanePlot.BarGroup>();
    for (var stage : Stage.values()) {
      var form =
          switch (stage) {
            case GEMM, COPY, REDUCE, LOCAL -> LanePlot.Form.BLOCK;
            case WAIT -> LanePlot.Form.THREAD;
            case SIGNAL -> LanePlot.Form.TICK;
          };
      var bars = new ArrayList<LanePlot.Bar>();
      spansByRank.forEach(
          (rank, spans) -> {
            for (var span : spans) {
              if (span.stage() == stage) {
                bars.add(
                    new LanePlot.Bar(
                        lanes.getOrDefault(new Lane(rank, span.stream()), 0),
                        scale.from(span.startNanos() - start),
                        scale.from(span.endNanos() - start),
                        form == LanePlot.Form.BLOCK && span.chunk() >= 0
                            ? Integer.toString(span.chunk())
                            : ""));
              }
            }
          });
      if (!bars.isEmpty()) {
        groups.add(
            new LanePlot.BarGroup(
                stage.name().toLowerCase(Locale.ROOT), Theme.colour(stage), form, bars));
      }
    }
    return groups;
  }

  private static String title(List<Profile> ofRanks, Shown shown) {
    var took = "Iteration " + shown.iteration + ": " + TimeScale.format(shown.slowestNanos);
    var shares =
        ofRanks.stream()
            .mapToDouble(p -> RankTimes.of(p, shown.iteration).overlappedToCommunication())
            .filter(Double::isFinite)
            .summaryStatistics();
    if (shares.getCount() == 0) {
      return took + ", with no communication to overlap";
    }
    var least = TimeScale.percent(shares.getMin());
    var most = TimeScale.percent(shares.getMax());
    return took
        + ", "
        + (least.equals(most) ? least : least + " to " + most)
        + " of communication beside a GEMM";
  }

  private static String subtitle(Profile first, Shown shown) {
    return ConfigurationLabel.of(first.configuration())
        + "\n"
        + (shown.median ? "the median of " : "one of ")
        + first.iterations()
        + (first.iterations() == 1 ? " iteration" : " iterations")
        + "; numbers are chunks; "
        + clocks(shown.clockErrorNanos);
  }

  private static String clocks(long errorNanos) {
    return errorNanos == 0 ? "one clock" : "clocks agree within ±" + TimeScale.format(errorNanos);
  }
}
