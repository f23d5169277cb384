package braid.internal.report.chart;

import braid.Profile;
import braid.Span;
import braid.Stage;
import braid.internal.report.ConfigurationColumns;
import braid.internal.report.TimeScale;
import braid.internal.report.statistics.RankTimes;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.SequencedMap;
import org.jfree.chart.JFreeChart;

/// One iteration of all ranks on one time axis: a lane for each rank's stream, a bar for each span.
public final class TimelineChart {
  private static final int LANE_PX = 20;

  /// The iteration to draw.
  ///
  /// @param median whether its time is the median of all
  /// @param clockErrorNanos how far spans of two ranks may be out of place against each other
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

    var lanes = lanes(spansByRank);
    var plot =
        new LanePlot(
            "time (" + scale.unit() + ")",
            scale.from(shownNanos),
            lanes.keySet().stream()
                .map(l -> new LanePlot.Lane("rank " + l.rank + "  " + l.stream, l.rank % 2 == 1))
                .toList(),
            LANE_PX,
            bars(spansByRank, lanes, start, scale));
    return plot.chart(title(ofRanks, shown), subtitle(ofRanks.getFirst(), shown));
  }

  private static SequencedMap<Lane, Integer> lanes(SequencedMap<Integer, List<Span>> spansByRank) {
    var lanes = new LinkedHashMap<Lane, Integer>();
    spansByRank.forEach(
        (rank, spans) -> {
          // Streams that multiply stand above those that move bytes.
          var firstStage = new HashMap<String, Stage>();
          for (var span : spans) {
            firstStage.merge(span.stream(), span.stage(), (a, b) -> a.compareTo(b) <= 0 ? a : b);
          }
          var order =
              Comparator.comparing((String stream) -> firstStage.getOrDefault(stream, Stage.SIGNAL))
                  .thenComparing(Comparator.naturalOrder());
          firstStage.keySet().stream()
              .sorted(order)
              .forEach(stream -> lanes.put(new Lane(rank, stream), lanes.size()));
        });
    return lanes;
  }

  private static List<LanePlot.Kind> bars(
      SequencedMap<Integer, List<Span>> spansByRank,
      SequencedMap<Lane, Integer> lanes,
      long start,
      TimeScale scale) {
    var kinds = new ArrayList<LanePlot.Kind>();
    for (var stage : Stage.values()) {
      boolean work = stage != Stage.WAIT && stage != Stage.SIGNAL;
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
                        work && span.chunk() >= 0 ? Integer.toString(span.chunk()) : ""));
              }
            }
          });
      if (!bars.isEmpty()) {
        kinds.add(
            new LanePlot.Kind(stage.name().toLowerCase(Locale.ROOT), Theme.colour(stage), bars));
      }
    }
    return kinds;
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
    return ConfigurationColumns.label(first.configuration())
        + "\n"
        + (shown.median ? "the median of " : "one of ")
        + first.iterations()
        + (first.iterations() == 1 ? " iteration" : " iterations")
        + "; numbers are chunks; clocks agree within ±"
        + TimeScale.format(shown.clockErrorNanos);
  }
}
