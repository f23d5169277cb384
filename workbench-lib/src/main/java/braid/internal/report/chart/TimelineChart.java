package braid.internal.report.chart;

import braid.internal.report.statistics.RankTimes;
import braid.internal.report.statistics.StreamOrder;
import braid.internal.report.value.Caveats;
import braid.internal.report.value.ConfigurationLabel;
import braid.internal.report.value.TimeScale;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import java.awt.Color;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SequencedMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jfree.chart.JFreeChart;

/// One iteration on one time axis, which ends with the last rank's iteration: one lane per stream
/// of a rank, one bar per span, and the begin and end of every rank's iteration.
public final class TimelineChart {
  private static final int LANE_PX = 20;

  /// Number of lanes from which they are as low as their labels allow.
  private static final int MANY_LANES = 48;

  private static final int LOW_LANE_PX = 15;
  private static final Color TRANSPARENT = new Color(0, 0, 0, 0);

  /// The iteration to draw.
  ///
  /// @param ranks ranks to draw
  /// @param median true if its time is the median of all
  /// @param clockErrorNanos largest error of position between spans of two ranks
  public record Shown(
      int iteration, List<Integer> ranks, long slowestNanos, boolean median, long clockErrorNanos) {
    public Shown {
      ranks = List.copyOf(ranks);
    }
  }

  private record Lane(int rank, String stream) {}

  /// One rank's iteration on the group's clock.
  ///
  /// @param begin begin of the iteration, or of its first span if that is not recorded
  private record RankIteration(Profile profile, List<Span> spans, long begin, long end) {
    static RankIteration of(Profile profile, int iteration) {
      var spans = profile.spans().stream().filter(s -> s.iteration() == iteration).toList();
      long begin = profile.begin(iteration).orElse(0);
      long end = begin + profile.iterationNanos().get(iteration);
      long last = spans.stream().mapToLong(Span::endNanos).max().orElse(end);
      return new RankIteration(profile, spans, begin, Math.max(end, last));
    }

    int rank() {
      return profile.place().rank();
    }
  }

  private final Shown shown;
  private final List<RankIteration> all;
  private final List<RankIteration> drawn;
  private final SequencedMap<Lane, Integer> lanes = new LinkedHashMap<>();
  private final long begin;
  private final long end;
  private final TimeScale scale;

  private TimelineChart(List<Profile> ofRanks, Shown shown) {
    this.shown = shown;
    all = ofRanks.stream().map(profile -> RankIteration.of(profile, shown.iteration)).toList();
    drawn = all.stream().filter(each -> shown.ranks.contains(each.rank())).toList();
    begin =
        drawn.stream()
            .flatMap(
                each ->
                    Stream.concat(Stream.of(each.begin), each.spans.stream().map(Span::startNanos)))
            .mapToLong(Long::longValue)
            .min()
            .orElse(0);
    end = Math.max(begin + 1, drawn.stream().mapToLong(RankIteration::end).max().orElse(0));
    scale = TimeScale.of(end - begin);
    var order = StreamOrder.of(ofRanks);
    for (var each : drawn) {
      var used = each.spans.stream().map(Span::stream).collect(Collectors.toSet());
      order.stream()
          .filter(used::contains)
          .forEach(stream -> lanes.put(new Lane(each.rank(), stream), lanes.size()));
      if (used.isEmpty()) {
        lanes.put(new Lane(each.rank(), ""), lanes.size());
      }
    }
  }

  /// @param ofRanks the profiles of all ranks, in the order of ranks
  public static JFreeChart of(List<Profile> ofRanks, Shown shown) {
    return new TimelineChart(ofRanks, shown).chart();
  }

  private JFreeChart chart() {
    var groups = new ArrayList<LanePlot.BarGroup>();
    groups.add(
        new LanePlot.BarGroup("", Theme.OUTSIDE, LanePlot.Form.BACKGROUND, outsideIterations()));
    for (var stage : Stage.values()) {
      bars(stage, groups);
    }
    groups.add(new LanePlot.BarGroup("", TRANSPARENT, LanePlot.Form.LABEL, withoutWork()));
    groups.add(
        new LanePlot.BarGroup(
            "begin and end of the iteration", Theme.REFERENCE, LanePlot.Form.EDGE, edges()));
    var plot =
        LanePlot.of(
            "time (" + scale.unit() + ")",
            scale.from(end - begin),
            named(),
            lanes.size() < MANY_LANES ? LANE_PX : LOW_LANE_PX,
            groups);
    return plot.chart(title(), subtitle(), false);
  }

  /// Names lanes by stream; the first lane of a rank also names the rank.
  private List<LanePlot.Lane> named() {
    var named = new ArrayList<LanePlot.Lane>();
    int before = -1;
    for (var lane : lanes.sequencedKeySet()) {
      var rank = lane.rank == before ? "" : all.get(lane.rank).profile.rankName() + "  ";
      named.add(new LanePlot.Lane((rank + lane.stream).strip(), lane.rank % 2 == 1));
      before = lane.rank;
    }
    return named;
  }

  private void bars(Stage stage, List<LanePlot.BarGroup> target) {
    var form =
        switch (stage) {
          case GEMM, ATTENTION, COPY, REDUCE, LOCAL -> LanePlot.Form.BLOCK;
          case WAIT -> LanePlot.Form.THREAD;
          case SIGNAL -> LanePlot.Form.TICK;
        };
    var bars = new ArrayList<LanePlot.Bar>();
    for (var each : drawn) {
      for (var span : each.spans) {
        if (span.stage() == stage) {
          int lane = lanes.getOrDefault(new Lane(each.rank(), span.stream()), 0);
          bars.add(bar(lane, span.startNanos(), span.endNanos(), labels(span)));
        }
      }
    }
    if (!bars.isEmpty()) {
      var name = stage == Stage.GEMM ? "GEMM" : stage.name().toLowerCase(Locale.ROOT);
      target.add(new LanePlot.BarGroup(name, Theme.colour(stage), form, bars));
    }
  }

  private LanePlot.Bar bar(int lane, long from, long to, List<String> labels) {
    return new LanePlot.Bar(lane, scale.from(from - begin), scale.from(to - begin), labels);
  }

  /// Returns the texts of a span, the longest first: its step, its step without the verb, its
  /// chunk; for a wait only the rank that it waits for.
  static List<String> labels(Span span) {
    var step = span.label();
    int peer = step.indexOf('@');
    return switch (span.stage()) {
      case SIGNAL -> List.of();
      case WAIT ->
          peer < 0
              ? List.of()
              : List.of(
                  "waits for rank " + step.substring(peer + 1), "rank " + step.substring(peer + 1));
      case GEMM, ATTENTION, COPY, REDUCE, LOCAL -> {
        var chunk = span.chunk() < 0 ? "" : Integer.toString(span.chunk());
        if (step.isEmpty()) {
          yield chunk.isEmpty() ? List.of() : List.of(chunk);
        }
        var labels = new ArrayList<>(List.of(step));
        if (step.contains(" ")) {
          labels.add(step.substring(step.indexOf(' ') + 1));
        }
        if (!chunk.isEmpty() && !labels.getLast().equals(chunk)) {
          labels.add(chunk);
        }
        yield labels;
      }
    };
  }

  /// Returns the begin and the end of each rank's iteration, on all of its lanes.
  private List<LanePlot.Bar> edges() {
    var edges = new ArrayList<LanePlot.Bar>();
    for (var each : drawn) {
      for (int lane : lanesOf(each)) {
        edges.add(bar(lane, each.begin, each.begin, List.of()));
        edges.add(bar(lane, each.end, each.end, List.of()));
      }
    }
    return edges;
  }

  private List<Integer> lanesOf(RankIteration each) {
    return lanes.entrySet().stream()
        .filter(lane -> lane.getKey().rank == each.rank())
        .map(Map.Entry::getValue)
        .toList();
  }

  /// Returns the time before and after each rank's iteration, in which others are in theirs.
  private List<LanePlot.Bar> outsideIterations() {
    var outside = new ArrayList<LanePlot.Bar>();
    for (var each : drawn) {
      var own = lanesOf(each);
      for (int lane : own) {
        boolean named = lane == own.get((own.size() - 1) / 2);
        var before = shown.iteration == 0 ? "not begun" : "iteration " + (shown.iteration - 1);
        if (each.begin > begin) {
          outside.add(bar(lane, begin, each.begin, named ? List.of(before) : List.of()));
        }
        if (each.end < end) {
          outside.add(bar(lane, each.end, end, named ? after(each) : List.of()));
        }
      }
    }
    return outside;
  }

  /// Names the time from the end of a rank's iteration to that of the slowest: by the next
  /// iteration if it has begun by then, by the slowest rank if the next one begins only when that
  /// is done, and else as time without work.
  private List<String> after(RankIteration each) {
    int next = shown.iteration + 1;
    if (next >= each.profile.iterations() || each.profile.startNanos().isEmpty()) {
      return List.of("no work");
    }
    if (each.profile.startNanos().get(next) < end) {
      return List.of("iteration " + next);
    }
    var slowest = all.stream().max(Comparator.comparingLong(RankIteration::end)).orElseThrow();
    return List.of("waiting for rank " + slowest.rank(), "rank " + slowest.rank());
  }

  /// Returns the time of each lane from its last span to the end of the rank's iteration: idle
  /// while other streams of the rank work, without work after the rank's last span.
  private List<LanePlot.Bar> withoutWork() {
    var rest = new ArrayList<LanePlot.Bar>();
    for (var each : drawn) {
      long last = each.spans.stream().mapToLong(Span::endNanos).max().orElse(each.begin);
      lanes.forEach(
          (lane, index) -> {
            if (lane.rank == each.rank()) {
              long from =
                  each.spans.stream()
                      .filter(span -> span.stream().equals(lane.stream))
                      .mapToLong(Span::endNanos)
                      .max()
                      .orElse(each.begin);
              if (from < each.end) {
                rest.add(bar(index, from, each.end, List.of(from < last ? "idle" : "no work")));
              }
            }
          });
    }
    return rest;
  }

  private String title() {
    if (!Caveats.timesCount(all.getFirst().profile.configuration())) {
      return "Iteration %d: order of its work".formatted(shown.iteration);
    }
    var took = "Iteration %d: %s".formatted(shown.iteration, TimeScale.format(shown.slowestNanos));
    var times = drawn.stream().map(each -> RankTimes.of(each.profile, shown.iteration)).toList();
    if (times.stream().allMatch(each -> each.communication() == 0)) {
      return took + ", with no communication to overlap";
    }
    var exposed = times.stream().mapToDouble(RankTimes::exposed).summaryStatistics();
    var least = TimeScale.format(exposed.getMin());
    var most = TimeScale.format(exposed.getMax());
    return exposed.getMax() == 0
        ? took + ", with no exposed communication"
        : "%s, of which %s exposed communication"
            .formatted(took, least.equals(most) ? least : least + " to " + most);
  }

  private String subtitle() {
    var first = all.getFirst().profile;
    return ConfigurationLabel.of(first.configuration())
        + "\n"
        + (shown.median ? "the median of " : "one of ")
        + first.iterations()
        + (first.iterations() == 1 ? " iteration" : " iterations")
        + ranks()
        + "; numbers are chunks, @ is the other rank; "
        + clocks(shown.clockErrorNanos);
  }

  private String ranks() {
    if (drawn.size() == all.size()) {
      return "";
    }
    return (drawn.size() == 1 ? "; rank " : "; ranks ")
        + shown.ranks.stream().map(String::valueOf).collect(Collectors.joining(", "))
        + " of "
        + all.size();
  }

  private static String clocks(long errorNanos) {
    return errorNanos == 0 ? "one clock" : "clocks agree within ±" + TimeScale.format(errorNanos);
  }
}
