package braid.internal.report.chart;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import braid.evidence.Study;
import braid.evidence.SyntheticProfiles;
import braid.evidence.SyntheticReduction;
import braid.evidence.SyntheticStudy;
import braid.internal.report.statistics.Spread;
import braid.internal.report.value.TimeScale;
import braid.model.Overlap;
import braid.model.Stage;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import javax.imageio.ImageIO;
import org.jfree.chart.JFreeChart;
import org.jfree.chart.axis.SymbolAxis;
import org.jfree.chart.plot.XYPlot;
import org.jfree.chart.ui.HorizontalAlignment;
import org.jfree.chart.ui.Layer;
import org.jfree.data.Range;
import org.jfree.data.xy.IntervalXYDataset;
import org.junit.jupiter.api.Test;

class ChartsTest {
  private static XYPlot plot(JFreeChart chart) {
    return (XYPlot) chart.getPlot();
  }

  private static void assertDrawn(JFreeChart chart) throws IOException {
    assertThat(ChartImage.svg(chart)).startsWith("<svg").endsWith("</svg>").contains("<text");
    var image = ImageIO.read(new ByteArrayInputStream(ChartImage.png(chart)));
    assertThat(image.getWidth()).isEqualTo(Theme.WIDTH_PX);
    assertThat(image.getHeight()).isEqualTo(ChartImage.height(chart));
    var pixels = image.getRGB(0, 0, image.getWidth(), image.getHeight(), null, 0, image.getWidth());
    assertThat(Arrays.stream(pixels).distinct().count()).isGreaterThan(10);
  }

  @Test
  void aTimelineHasALaneForEachStreamAndABarForEachSpan() throws IOException {
    var set = new SyntheticProfiles(2, 3, 4, 2, 1_000_000, 3_000_000).set();
    var chart = set.timeline(1);
    var data = (IntervalXYDataset) plot(chart).getDataset();

    assertThat(((SymbolAxis) plot(chart).getRangeAxis()).getSymbols())
        .containsExactly(
            "rank 0  compute 0", "compute 1", "copy", "rank 1  compute 0", "compute 1", "copy");
    int gemm = data.indexOf("GEMM");
    int copy = data.indexOf("copy");
    assertThat(data.getItemCount(gemm)).isEqualTo(2 * 4);
    assertThat(data.getStartXValue(copy, 0)).as("each iteration begins at 0").isZero();
    assertThat(data.getEndXValue(copy, 0)).isEqualTo(1.0, within(1e-9));
    assertThat(plot(chart).getDomainAxis().getRange())
        .as("the axis ends with the iteration")
        .isEqualTo(new Range(0, set.slowestNanos(1) / 1e6));
    assertThat(plot(chart).getDomainAxis().getLabel()).isEqualTo("time (ms)");
    assertThat(chart.getTitle().getText())
        .isEqualTo("Iteration 1: 8.06 ms, of which 1.00 ms exposed communication");
    assertDrawn(chart);
  }

  @Test
  void aTimelineOfManyStreamsNamesChunksAndKeepsStreamsInTheirOrder() throws IOException {
    var chart = new SyntheticReduction(2, 1, 12, 11, 4_000_000, 1_000_000).set().timeline();
    var data = (IntervalXYDataset) plot(chart).getDataset();

    assertThat(((SymbolAxis) plot(chart).getRangeAxis()).getSymbols())
        .startsWith("rank 0  gemm-0", "gemm-1", "gemm-2")
        .containsSequence("gemm-9", "gemm-10", "comm", "comm-gather", "reduce", "rank 1  gemm-0");
    assertThat(data.getItemCount(data.indexOf("reduce"))).isEqualTo(2 * 12);
    var svg = ChartImage.svg(chart);
    for (var chunk : List.of("0", "11")) {
      // The bars of a GEMM, a copy and the gathering of each rank have room for a label; that of
      // the sum has none.
      assertThat(svg.split(">" + chunk + "</text>", -1).length - 1)
          .as("chunk " + chunk)
          .isGreaterThanOrEqualTo(3 * 2);
    }
    assertDrawn(chart);
  }

  @Test
  void aBreakdownCountsReducingAsCommunication() throws IOException {
    var set = new SyntheticReduction(2, 1, 1, 1, 40_000, 30_000).set();
    var data = (IntervalXYDataset) plot(set.breakdown()).getDataset();

    assertThat(data.getEndXValue(0, 0))
        .as("exposed, µs: copied, added up and gathered")
        .isEqualTo(30 + 10 + 30, within(1e-9));
    assertThat(data.getItemCount(1)).as("nothing at once").isZero();
    assertThat(data.getEndXValue(2, 0) - data.getStartXValue(2, 0))
        .as("gemm only")
        .isEqualTo(40, within(1e-9));
    assertDrawn(set.breakdown());
  }

  @Test
  void aStudyWithoutLinesIsAChartOfConfigurations() throws IOException {
    var overlaps =
        List.of(
            Overlap.pipelined(4),
            Overlap.pipelined(4).replay(),
            Overlap.pipelined(4).boundaries(0, 10, 30, 40, 64));
    var study =
        new SyntheticStudy(100e6, 0.005, 8, 3)
            .of(
                overlaps,
                tuning -> tuning.replayed() ? 70e6 : tuning.boundaries().isEmpty() ? 80e6 : 9e7);
    var chart = study.chart();
    var data = (IntervalXYDataset) plot(chart).getDataset();

    assertThat(((SymbolAxis) plot(chart).getRangeAxis()).getSymbols())
        .containsExactly("replayed", "pipelined, 4 splits", "boundaries 0-10-30-40-64");
    double median = study.trials().get(1).medianNanos() / 1e6;
    assertThat(data.getXValue(0, 0)).isEqualTo(median);
    assertInterval(study, 1, median, data.getStartXValue(0, 0), data.getEndXValue(0, 0));
    assertThat(((SymbolAxis) plot(chart).getRangeAxis(1)).getSymbols()[0])
        .matches("\\d\\d\\.\\d ms  −\\d\\d\\.\\d% \\(−\\d\\d\\.\\d to −\\d\\d\\.\\d\\)");
    assertThat(plot(chart).getDataset(1).getYValue(0, 0)).as("the best is ringed").isZero();
    assertThat(plot(chart).getDomainMarkers(Layer.BACKGROUND).size())
        .as("the reference")
        .isEqualTo(1);
    assertThat(plot(chart).getLegendItems().get(0).getLabel()).startsWith("unfused ");
    assertThat(chart.getTitle().getText()).startsWith("replayed: 3").contains(" (", " to ");
    assertDrawn(chart);
  }

  @Test
  void linesOfOnePointAreNoLines() {
    var machine = new SyntheticStudy(100e6, 0.005, 8, 3);
    int[] splits = {1, 2, 4, 8};
    var grid = new ArrayList<>(SyntheticStudy.overlaps(splits, 1, 2));
    grid.add(Overlap.pipelined(4).boundaries(0, 10, 30, 40, 64));
    assertThat(machine.of(grid, _ -> 9e7).charts()).containsOnlyKeys("splits", "heatmap");

    var mixed = List.of(Overlap.pipelined(2), Overlap.ring(4), Overlap.direct(8).streams(2));
    assertThat(machine.of(mixed, _ -> 9e7).charts().firstEntry().getKey())
        .isEqualTo("configurations");

    var many = SyntheticStudy.overlaps(splits, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    var chart = machine.of(many, tuning -> 8e7 + 1e5 * tuning.streams()).chart();
    assertThat(plot(chart).getDataset().getItemCount(0)).isEqualTo(9 * splits.length);
    many.addAll(SyntheticStudy.overlaps(splits, 10, 11));
    var cut = machine.of(many, chosen -> 8e7 + 1e5 * chosen.streams()).chart();
    assertThat(plot(cut).getDataset().getItemCount(0)).isEqualTo(ConfigurationsChart.MOST_SHOWN);
    assertThat(ChartImage.svg(cut)).contains("the fastest 40 of 44");
  }

  @Test
  void aBreakdownAddsUpToTheIteration() throws IOException {
    var chart = new SyntheticProfiles(2, 2, 4, 1, 10, 10).set().breakdown();
    var data = (IntervalXYDataset) plot(chart).getDataset();

    assertThat(data.getEndXValue(0, 0)).as("exposed, µs").isEqualTo(0.01, within(1e-12));
    assertThat(data.getEndXValue(1, 0)).as("then both").isEqualTo(0.04, within(1e-12));
    assertThat(data.getEndXValue(2, 0)).as("then GEMM only").isEqualTo(0.05, within(1e-12));
    assertThat(data.getItemCount(3)).as("no idle time").isZero();
    assertDrawn(chart);
  }

  @Test
  void timeAgainstSplitsHasASeriesForEachStreamCountAndRingsTheBest() throws IOException {
    int[] splits = {1, 2, 4, 12};
    var study =
        new SyntheticStudy(100e6, 0.005, 12, 3)
            .of(SyntheticStudy.overlaps(splits, 1, 2), SyntheticStudy.model(75e6, 25e6, 0.5e6));
    var chart = study.chart();
    var data = (IntervalXYDataset) plot(chart).getDataset();

    assertThat(data.getSeriesCount()).isEqualTo(2);
    assertThat(data.getSeriesKey(1).toString()).isEqualTo("2 streams");
    assertThat(data.getItemCount(0)).isEqualTo(splits.length);
    for (int item = 0; item < splits.length; item++) {
      var trial = study.trials().get(item);
      assertThat(data.getXValue(0, item))
          .isEqualTo(SplitsAxis.position(splits[item]), within(0.05));
      double median = trial.medianNanos() / 1e6;
      assertThat(data.getYValue(0, item)).isEqualTo(median);
      assertInterval(study, item, median, data.getStartYValue(0, item), data.getEndYValue(0, item));
    }
    assertThat(plot(chart).getDataset(1).getXValue(0, 0))
        .isEqualTo(SplitsAxis.position(study.best().splits()), within(0.05));
    assertThat(chart.getTitle().getText()).contains("less time than unfused");
    assertThat(plot(chart).getLegendItems().get(0).getLabel())
        .isEqualTo("unfused " + TimeScale.format(Spread.quantile(study.unfusedNanos(), 0.5)));
    assertThat(plot(chart).getLegendItems().get(1).getLabel()).isEqualTo("1 stream");
    assertThat(plot(chart).getDomainAxis().getUpperBound())
        .as("no empty room right of the last split count")
        .isLessThan(SplitsAxis.position(splits[splits.length - 1]) + 0.5);
    assertDrawn(chart);
  }

  @Test
  void aHeatMapHasACellForEachCombinationThatWasMeasured() throws IOException {
    var overlaps = new ArrayList<>(SyntheticStudy.overlaps(new int[] {1, 4}, 1, 3));
    overlaps.removeLast();
    var study =
        new SyntheticStudy(100e6, 0.005, 8, 3).of(overlaps, tuning -> 1e8 - tuning.splits());
    var data = plot(study.heatmap()).getDataset();

    assertThat(data.getItemCount(0)).isEqualTo(3);
    assertDrawn(study.heatmap());
    var oneStream = one(Overlap.pipelined(4));
    assertThatThrownBy(oneStream::heatmap).hasMessageContaining("at least 2 stream counts");
  }

  /// The interval is that of the difference to unfused, and contains the median.
  private static void assertInterval(
      Study<Overlap> study, int trial, double median, double low, double high) {
    double unfused = study.unfusedMedianNanos() / 1e6;
    var saved = study.saved().get(trial);
    assertThat(low).isEqualTo(Math.min(median, unfused * (1 - saved.high())), within(1e-9));
    assertThat(high).isEqualTo(Math.max(median, unfused * (1 - saved.low())), within(1e-9));
  }

  @Test
  void seriesOfOneSplitCountSurroundItsTick() {
    var overlaps = SyntheticStudy.overlaps(new int[] {1, 2, 4, 8}, 1, 2, 3);
    overlaps.remove(Overlap.pipelined(8));
    overlaps.remove(Overlap.pipelined(8).streams(2));
    var chart =
        new SyntheticStudy(100e6, 0.005, 8, 3)
            .of(overlaps, tuning -> 9e7 + tuning.splits())
            .chart();
    var data = plot(chart).getDataset();
    for (int count : new int[] {1, 2, 4, 8}) {
      var positions = new ArrayList<Double>();
      for (int series = 0; series < data.getSeriesCount(); series++) {
        for (int item = 0; item < data.getItemCount(series); item++) {
          if (Math.abs(data.getXValue(series, item) - SplitsAxis.position(count)) < 0.3) {
            positions.add(data.getXValue(series, item));
          }
        }
      }
      assertThat(positions).hasSize(count == 8 ? 1 : 3).doesNotHaveDuplicates();
      assertThat(positions.stream().mapToDouble(x -> x).average().orElseThrow())
          .isEqualTo(SplitsAxis.position(count), within(1e-9));
    }
    assertThat(ChartImage.svg(chart)).containsPattern(">\\d\\d\\.\\d ms</text>");
  }

  @Test
  void titlesAreRegularAndAtTheLeft() {
    var chart = one(Overlap.pipelined(4)).chart();
    assertThat(chart.getTitle().getFont().isBold()).isFalse();
    assertThat(chart.getTitle().getHorizontalAlignment()).isEqualTo(HorizontalAlignment.LEFT);
    assertThat(Theme.SMALL.getSize()).as("readable at 800 pixels").isGreaterThanOrEqualTo(11);
  }

  @Test
  void methodsHaveTheirColourInEveryChart() {
    var ring = Theme.seriesColours(List.of("ring")).getFirst();
    assertThat(Theme.seriesColours(List.of("pipelined", "ring")).get(1)).isEqualTo(ring);
    assertThat(Theme.seriesColours(List.of("2 streams", "ring, 4 splits")).get(1)).isEqualTo(ring);
    assertThat(Theme.seriesColours(List.of("ring, 1 split", "ring, 2 splits")))
        .doesNotHaveDuplicates();
    for (var stage : Stage.values()) {
      assertThat(Theme.seriesColours(List.of("pipelined", "direct", "ring", "bulk", "a", "b")))
          .doesNotContain(Theme.colour(stage));
    }
  }

  @Test
  void extremesAreDrawnToo() throws IOException {
    assertDrawn(one(Overlap.pipelined(4)).chart());
    assertDrawn(new SyntheticProfiles(8, 1, 64, 3, 20, 60).set().timeline());
    assertDrawn(new SyntheticProfiles(1, 1, 1, 1, 0, 1).set().timeline());
    assertDrawn(new SyntheticProfiles(1, 1, 2, 1, 9_000_000_000L, 1).set().timeline());
  }

  private static Study<Overlap> one(Overlap overlap) {
    return new SyntheticStudy(20e9, 0.01, 6, 1).of(List.of(overlap), _ -> 18e9);
  }
}
