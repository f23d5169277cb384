package braid.internal.report.chart;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import braid.evidence.ProfileSet;
import braid.model.Place;
import braid.model.Profile;
import braid.model.Span;
import braid.model.Stage;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import org.jfree.chart.ChartRenderingInfo;
import org.jfree.chart.JFreeChart;
import org.jfree.chart.axis.SymbolAxis;
import org.jfree.chart.plot.XYPlot;
import org.jfree.data.Range;
import org.jfree.data.xy.IntervalXYDataset;
import org.junit.jupiter.api.Test;

/// Iterations of 1 ms whose begin, spans and end are known.
class TimelineChartTest {
  private static final long MICRO = 1_000;

  /// Rank 0 begins at 0 and ends at 800 µs, rank 1 begins at 100 and ends at 1000 µs.
  ///
  /// @param next begin of rank 0's next iteration, in µs
  private static ProfileSet set(long next) {
    var zero =
        List.of(
            span(0, Stage.GEMM, "math", 50, 400, "gemm own"),
            span(0, Stage.COPY, "across", 60, 700, "fetch 1 @1"),
            span(0, Stage.SIGNAL, "across", 700, 701, "signal 1 @1"));
    var one =
        List.of(
            span(0, Stage.WAIT, "math", 100, 600, "wait 1 @0"),
            span(0, Stage.GEMM, "math", 600, 1000, "gemm 1"));
    return ProfileSet.of(
        List.of(
            profile(0, List.of(0L, next * MICRO), List.of(800 * MICRO, 100 * MICRO), zero),
            profile(
                1, List.of(100 * MICRO, 1000 * MICRO), List.of(900 * MICRO, 100 * MICRO), one)));
  }

  private static Span span(
      int iteration, Stage stage, String lane, long from, long to, String label) {
    return new Span(iteration, 1, stage, lane, from * MICRO, to * MICRO, 1, 1, List.of(), label);
  }

  private static Profile profile(int rank, List<Long> starts, List<Long> nanos, List<Span> spans) {
    return new Profile(
        new Place(rank, 2),
        new LinkedHashMap<>(),
        nanos,
        spans,
        0,
        new LinkedHashMap<>(),
        List.of(),
        starts,
        List.of(),
        Optional.empty(),
        Optional.empty());
  }

  private static XYPlot plot(JFreeChart chart) {
    return (XYPlot) chart.getPlot();
  }

  private static IntervalXYDataset data(JFreeChart chart) {
    return (IntervalXYDataset) plot(chart).getDataset();
  }

  private static List<Double> edges(JFreeChart chart, int lane) {
    var data = data(chart);
    int series = data.indexOf("begin and end of the iteration");
    var edges = new ArrayList<Double>();
    for (int item = 0; item < data.getItemCount(series); item++) {
      if (data.getYValue(series, item) == lane) {
        edges.add(data.getStartXValue(series, item));
      }
    }
    return edges;
  }

  @Test
  void beginAndEndOfEveryRankAreDrawnAndTheAxisEndsWithTheLast() {
    var chart = set(950).timeline(0);

    assertThat(((SymbolAxis) plot(chart).getRangeAxis()).getSymbols())
        .containsExactly("rank 0  math", "across", "rank 1  math");
    assertThat(plot(chart).getDomainAxis().getRange()).isEqualTo(new Range(0, 1));
    assertThat(edges(chart, 0)).containsExactly(0.0, 0.8);
    assertThat(edges(chart, 1)).containsExactly(0.0, 0.8);
    assertThat(edges(chart, 2)).containsExactly(0.1, 1.0);
    var info = new ChartRenderingInfo();
    chart.createBufferedImage(860, ChartImage.height(chart), info);
    var area = info.getPlotInfo().getDataArea();
    assertThat(
            plot(chart).getDomainAxis().valueToJava2D(1.0, area, plot(chart).getDomainAxisEdge()))
        .as("the iteration ends at the right border")
        .isEqualTo(area.getMaxX(), within(0.5));
  }

  @Test
  void timeWithoutSpansIsNamed() {
    assertThat(ChartImage.svg(set(950).timeline(0)))
        .as("rank 0: its math stream waits for nothing, then its next iteration begins")
        .contains(">idle</text>", ">no work</text>", ">iteration 1</text>", ">not begun</text>")
        .doesNotContain("waiting for rank");
    assertThat(ChartImage.svg(set(1000).timeline(0)))
        .as("rank 0 begins its next iteration when rank 1 has ended")
        .contains(">waiting for rank 1</text>");
    var older = new ArrayList<Profile>();
    for (var each : set(950).profiles()) {
      older.add(
          new Profile(each.place(), each.configuration(), each.iterationNanos(), each.spans(), 0));
    }
    assertThat(ChartImage.svg(ProfileSet.of(older).timeline(0)))
        .as("begins that are not recorded")
        .doesNotContain("waiting for rank", "iteration 1");
  }

  @Test
  void barsAreLabelledWithTheirSteps() {
    assertThat(ChartImage.svg(set(950).timeline(0)))
        .contains(">gemm own</text>", ">fetch 1 @1</text>", ">waits for rank 0</text>");
    assertThat(TimelineChart.labels(span(0, Stage.COPY, "c", 0, 1, "fetch 1 @2")))
        .containsExactly("fetch 1 @2", "1 @2", "1");
    assertThat(TimelineChart.labels(span(0, Stage.GEMM, "c", 0, 1, "gemm 1")))
        .containsExactly("gemm 1", "1");
    assertThat(TimelineChart.labels(span(0, Stage.GEMM, "c", 0, 1, ""))).containsExactly("1");
    assertThat(TimelineChart.labels(span(0, Stage.WAIT, "c", 0, 1, "after 1"))).isEmpty();
  }

  @Test
  void oneRankHasATimelineOfItsOwn() {
    var chart = set(950).timelineOf(1);
    assertThat(((SymbolAxis) plot(chart).getRangeAxis()).getSymbols())
        .containsExactly("rank 1  math");
    assertThat(plot(chart).getDomainAxis().getRange()).isEqualTo(new Range(0, 900));
    assertThat(set(950).timeline(0, 0, 1).getTitle().getText())
        .isEqualTo(set(950).timeline(0).getTitle().getText());
    assertThatThrownBy(() -> set(950).timelineOf(2))
        .hasMessage("the rank of a timeline must be 0..1 but was 2");
  }

  @Test
  void aRankWithoutSpansHasALane() {
    var idle = set(950).profiles().get(0);
    var without =
        profile(1, List.of(0L, 900 * MICRO), List.of(900 * MICRO, 100 * MICRO), List.of());
    var chart = ProfileSet.of(List.of(idle, without)).timeline(0);
    assertThat(((SymbolAxis) plot(chart).getRangeAxis()).getSymbols())
        .containsExactly("rank 0  math", "across", "rank 1");
    assertThat(ChartImage.svg(chart)).contains(">no work</text>");
  }
}
