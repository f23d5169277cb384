package braid.internal.report.chart;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import braid.Overlap;
import braid.Study;
import braid.SyntheticProfiles;
import braid.SyntheticStudy;
import braid.internal.report.TimeScale;
import braid.internal.report.statistics.OrderStatistics;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import javax.imageio.ImageIO;
import org.jfree.chart.JFreeChart;
import org.jfree.chart.axis.SymbolAxis;
import org.jfree.chart.plot.XYPlot;
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
            "rank 0  compute 0",
            "rank 0  compute 1",
            "rank 0  copy",
            "rank 1  compute 0",
            "rank 1  compute 1",
            "rank 1  copy");
    assertThat(data.getSeriesCount()).isEqualTo(4);
    assertThat(data.getSeriesKey(0).toString()).isEqualTo("gemm");
    assertThat(data.getItemCount(0)).isEqualTo(2 * 4);
    assertThat(data.getSeriesKey(1).toString()).isEqualTo("copy");
    assertThat(data.getStartXValue(1, 0)).as("each iteration begins at 0").isZero();
    assertThat(data.getEndXValue(1, 0)).isEqualTo(1.0, within(1e-9));
    assertThat(plot(chart).getDomainAxis().getLabel()).isEqualTo("time (ms)");
    assertThat(chart.getTitle().getText()).startsWith("Iteration 1: 8.06 ms, ");
    assertDrawn(chart);
  }

  @Test
  void aBreakdownAddsUpToTheIteration() throws IOException {
    var chart = new SyntheticProfiles(1, 2, 4, 1, 10, 10).set().breakdown();
    var data = (IntervalXYDataset) plot(chart).getDataset();

    assertThat(data.getEndXValue(0, 0)).as("gemm only, µs").isEqualTo(0.01, within(1e-12));
    assertThat(data.getEndXValue(1, 0)).as("then both").isEqualTo(0.04, within(1e-12));
    assertThat(data.getEndXValue(2, 0)).as("then copy only").isEqualTo(0.05, within(1e-12));
    assertThat(data.getItemCount(3)).as("no idle time").isZero();
    assertDrawn(chart);
  }

  @Test
  void timeAgainstSplitsHasASeriesForEachStreamCountAndRingsTheBest() throws IOException {
    int[] splits = {1, 2, 4, 12};
    var study =
        new SyntheticStudy(100e6, 0.005, 8, 3)
            .of(SyntheticStudy.overlaps(splits, 1, 2), SyntheticStudy.model(75e6, 25e6, 0.5e6));
    var chart = study.chart();
    var data = (IntervalXYDataset) plot(chart).getDataset();

    assertThat(data.getSeriesCount()).isEqualTo(2);
    assertThat(data.getSeriesKey(1).toString()).isEqualTo("streams=2");
    assertThat(data.getItemCount(0)).isEqualTo(splits.length);
    for (int item = 0; item < splits.length; item++) {
      var trial = study.trials().get(item);
      assertThat(data.getXValue(0, item))
          .isEqualTo(SplitsAxis.position(splits[item]), within(0.05));
      assertThat(data.getYValue(0, item)).isEqualTo(trial.medianNanos() / 1e6);
      assertThat(data.getStartYValue(0, item)).isEqualTo(trial.p10Nanos() / 1e6);
      assertThat(data.getEndYValue(0, item)).isEqualTo(trial.p90Nanos() / 1e6);
    }
    assertThat(plot(chart).getDataset(1).getXValue(0, 0))
        .isEqualTo(SplitsAxis.position(study.best().splits()), within(0.05));
    assertThat(chart.getTitle().getText()).contains("less time than unfused");
    assertThat(plot(chart).getLegendItems().get(0).getLabel())
        .isEqualTo(
            "unfused " + TimeScale.format(OrderStatistics.quantile(study.unfusedNanos(), 0.5)));
    assertThat(plot(chart).getLegendItems().get(1).getLabel()).isEqualTo("streams=1");
    assertThat(plot(chart).getDomainAxis().getUpperBound())
        .as("no empty room right of the last split count")
        .isLessThan(SplitsAxis.position(splits[splits.length - 1]) + 0.5);
    assertDrawn(chart);
  }

  @Test
  void aHeatMapHasACellForEachCombinationThatWasMeasured() throws IOException {
    var overlaps = new ArrayList<>(SyntheticStudy.overlaps(new int[] {1, 4}, 1, 3));
    overlaps.removeLast();
    var study = new SyntheticStudy(100e6, 0.005, 8, 3).of(overlaps, how -> 1e8 - how.splits());
    var data = plot(study.heatmap()).getDataset();

    assertThat(data.getItemCount(0)).isEqualTo(3);
    assertDrawn(study.heatmap());
    var oneStream = one(Overlap.splits(4));
    assertThatThrownBy(oneStream::heatmap).hasMessageContaining("at least 2 stream counts");
  }

  @Test
  void extremesAreDrawnToo() throws IOException {
    assertDrawn(one(Overlap.splits(4)).chart());
    assertDrawn(new SyntheticProfiles(8, 1, 64, 3, 20, 60).set().timeline());
    assertDrawn(new SyntheticProfiles(1, 1, 1, 1, 0, 1).set().timeline());
    assertDrawn(new SyntheticProfiles(1, 1, 2, 1, 9_000_000_000L, 1).set().timeline());
  }

  private static Study one(Overlap overlap) {
    return new SyntheticStudy(20e9, 0.01, 6, 1).of(List.of(overlap), _ -> 18e9);
  }
}
