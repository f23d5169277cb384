package braid.evidence;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import braid.LocalRanks;
import braid.Tuner;
import braid.model.BraidException;
import braid.model.GemmSpec;
import braid.model.Method;
import braid.model.Overlap;
import braid.schedule.Schedule;
import braid.schedule.simulation.Machine;
import java.awt.BasicStroke;
import java.awt.Color;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.IntStream;
import org.jfree.chart.axis.LogAxis;
import org.jfree.chart.renderer.xy.XYLineAndShapeRenderer;
import org.jfree.chart.title.TextTitle;
import org.jfree.chart.ui.Layer;
import org.junit.jupiter.api.Test;

class CrossoversTest {
  private static final int ROUNDS = 24;

  /// Times of 24 rounds around a value.
  ///
  /// @param spread distance of the farthest times
  private static List<Long> times(long nanos, long spread, int shift) {
    return IntStream.range(0, ROUNDS)
        .mapToObj(round -> nanos + spread * ((7 * round + shift) % 11 - 5) / 5)
        .toList();
  }

  private static Study<Overlap> study(long unfused, long pipelined, long ring, long spread) {
    return new Study<>(
        new LinkedHashMap<>(GemmSpec.gemmAllReduce(64, 16, 8).columns()),
        4,
        1,
        times(unfused, spread, 0),
        times(unfused, spread, 3),
        List.of(
            new Study.Trial<>(Overlap.pipelined(2), times(pipelined, spread, 1)),
            new Study.Trial<>(Overlap.pipelined(4), times(pipelined + 90_000, spread, 2)),
            new Study.Trial<>(Overlap.ring(2), times(ring, spread, 4))),
        Overlap.unfused());
  }

  private static Crossovers crossovers() {
    var studies = new TreeMap<Integer, Study<Overlap>>();
    studies.put(4096, study(4_000_000, 3_600_000, 3_000_000, 9_000));
    studies.put(64, study(400_000, 500_000, 600_000, 900));
    studies.put(128, study(500_000, 600_000, 700_000, 900));
    studies.put(1024, study(2_000_000, 1_700_000, 2_400_000, 9_000));
    // The times of a round differ by half.
    studies.put(512, study(1_000_000, 950_000, 1_050_000, 500_000));
    return new Crossovers(studies);
  }

  @Test
  void rangesNameMethodsAndUndecidedSizes() {
    assertThat(crossovers().ranges())
        .containsExactly(
            new Crossovers.Range(Crossovers.ROWS, 64, 128, "unfused"),
            new Crossovers.Range(Crossovers.ROWS, 512, 512, "undecided"),
            new Crossovers.Range(Crossovers.ROWS, 1024, 1024, "pipelined"),
            new Crossovers.Range(Crossovers.ROWS, 4096, 4096, "ring"));
    assertThat(crossovers().headline())
        .isEqualTo(
            "m = 64 to 128: unfused; m = 512: undecided; m = 1024: pipelined; m = 4096: ring");
  }

  @Test
  void theTableHasOneRowPerNumberOfRows() {
    var table = crossovers().table();
    assertThat(table.intColumn("m").asList()).containsExactly(64, 128, 512, 1024, 4096);
    assertThat(table.stringColumn("take").get(3)).isEqualTo("pipelined, 2 splits");
    assertThat(table.stringColumn("time vs unfused").get(0)).isEqualTo("–");
    assertThat(table.stringColumn("time vs unfused").get(4)).startsWith("−25");
    assertThat(table.doubleColumn("unfused, median ms").get(4)).isEqualTo(4.0);
  }

  @Test
  void theChartHasLinesOfMethodsAndUndecidedBands() {
    var chart = crossovers().chart();
    assertThat(chart.getTitle().getText()).isEqualTo(crossovers().headline());
    var plot = chart.getXYPlot();
    assertThat(plot.getSeriesCount()).isEqualTo(2);
    assertThat(plot.getDataset().getSeriesKey(0).toString()).isEqualTo("pipelined");
    assertThat(plot.getDataset().getItemCount(1)).isEqualTo(5);
    // The ring of 4096 rows takes three quarters.
    assertThat(plot.getDataset().getYValue(1, 4)).isCloseTo(0.75, within(0.01));
    assertThat(plot.getDomainMarkers(Layer.BACKGROUND).size()).isEqualTo(1);
    assertThat(crossovers().display().data()).containsKeys("text/plain", "text/html", "image/png");
  }

  @Test
  void aSweepRunsAStudyForEachNumberOfRows() {
    LocalRanks.run(
        2,
        world -> {
          var spec = GemmSpec.gemmAllReduce(64, 16, 8);
          var found = Tuner.on(world).gemm(spec).splits(1, 8).repeats(6).sweep(1, 4, 64);
          assertThat(found.studies().sequencedKeySet()).containsExactly(1, 4, 64);
          // Fewer rows than splits leave the tuning out.
          assertThat(found.studies().values().stream().map(study -> study.trials().size()))
              .containsExactly(1, 1, 2);
          assertThat(found.studies().lastEntry().getValue().problem()).containsEntry("m", "64");
        });
  }

  private static Crossovers ofRanks(SequencedMap<Integer, Study<Overlap>> measured) {
    var predicted = new TreeMap<Integer, SequencedMap<Overlap, Double>>();
    for (int ranks : new int[] {2, 4, 8}) {
      var times = new LinkedHashMap<Overlap, Double>();
      times.put(Overlap.unfused(), 100e3);
      times.put(Overlap.pipelined(2), ranks == 2 ? 300e3 : 80e3);
      times.put(Overlap.pipelined(4), ranks == 2 ? 290e3 : 79.9e3);
      times.put(Overlap.ring(2), ranks == 8 ? 50e3 : 110e3);
      predicted.put(ranks, times);
    }
    return new Crossovers(
        Crossovers.RANKS,
        measured,
        Optional.of(new Crossovers.Prediction("h200x8", "gemm", predicted)));
  }

  @Test
  void predictedRanksStandApartFromMeasuredOnes() {
    var measured = new TreeMap<Integer, Study<Overlap>>();
    measured.put(4, study(4_000_000, 3_600_000, 3_000_000, 9_000));
    var found = ofRanks(measured);
    assertThat(found.headline())
        .isEqualTo(
            "predicted on h200x8: ranks = 2: unfused; ranks = 4: pipelined; ranks = 8: ring; measured: ranks = 4: ring");
    var table = found.table();
    assertThat(table.intColumn("ranks").asList()).containsExactly(4, 2, 4, 8);
    assertThat(table.stringColumn("basis").asList())
        .containsExactly(
            "measured", "predicted on h200x8", "predicted on h200x8", "predicted on h200x8");
    assertThat(table.stringColumn("take").get(2)).isEqualTo("pipelined, 4 splits");
    assertThat(table.stringColumn("time vs unfused").get(3)).isEqualTo("−50.0%");
    assertThat(found.chart().getTitle().getText())
        .isEqualTo(found.headline().replace(" on h200x8", ""));
    var plot = found.chart().getXYPlot();
    // Measured above predicted, in the same colours.
    assertThat(plot.getDataset(0).getItemCount(0)).isEqualTo(1);
    assertThat(plot.getDataset(1).getItemCount(0)).isEqualTo(3);
    assertThat(plot.getDataset(1).getYValue(0, 0)).isCloseTo(2.9, within(1e-9));
    assertThat(plot.getRenderer(1).getSeriesPaint(1))
        .isEqualTo(plot.getRenderer(0).getSeriesPaint(1));
    var hollow = (XYLineAndShapeRenderer) plot.getRenderer(1);
    assertThat(hollow.getSeriesFillPaint(0)).isEqualTo(Color.WHITE);
    assertThat(((BasicStroke) hollow.getSeriesStroke(0)).getDashArray()).isNotEmpty();
    assertThat(plot.getFixedLegendItems().get(3).getLabel()).isEqualTo("predicted on h200x8");
  }

  @Test
  void theAxisIsLogarithmicForLargeRatios() {
    // 2.9 and 0.5.
    var chart = ofRanks(new TreeMap<>()).chart();
    assertThat(((TextTitle) chart.getSubtitle(0)).getText()).isEqualTo("gemm");
    assertThat(chart.getXYPlot().getRangeAxis()).isInstanceOf(LogAxis.class);
    assertThat(crossovers().chart().getXYPlot().getRangeAxis()).isNotInstanceOf(LogAxis.class);
  }

  @Test
  void aPredictionNeedsUnfused() {
    var times = new LinkedHashMap<Overlap, Double>();
    times.put(Overlap.ring(2), 1.0);
    var predicted = new TreeMap<Integer, SequencedMap<Overlap, Double>>();
    predicted.put(2, times);
    assertThatThrownBy(() -> new Crossovers.Prediction("h200x8", "gemm", predicted))
        .hasMessage(
            "a prediction needs times of unfused and 1 or more overlaps at each size but has [ring, 2 splits] at 2; leave the size out");
  }

  @Test
  void aSweepOverRanksPredictsAllAndMeasuresItsOwn() {
    var found = new ConcurrentLinkedQueue<Crossovers>();
    var spec = GemmSpec.gemmReduceScatter(64, 16, 64);
    var machine = Machine.named("h200x8x4hosts");
    LocalRanks.run(
        2,
        world ->
            found.add(
                Tuner.on(world)
                    .gemm(spec)
                    .splits(1, 8)
                    .repeats(6)
                    .predictedOn(machine)
                    .sweepRanks(2, 16)));
    assertThat(found).hasSize(2);
    var first = found.element();
    assertThat(found).extracting(Crossovers::prediction).containsOnly(first.prediction());
    assertThat(first.studies().sequencedKeySet()).containsExactly(2);
    var predicted = first.prediction().orElseThrow();
    assertThat(predicted.machine()).isEqualTo("h200x8x4hosts, not calibrated");
    // Four rows of each of 16 ranks are too few for 8 splits.
    assertThat(Objects.requireNonNull(predicted.nanos().get(16)).keySet())
        .containsExactly(Overlap.unfused(), Overlap.pipelined(1));
    assertThat(predicted.nanos(2, Overlap.pipelined(8)))
        .isEqualTo(machine.iterationNanos(Schedule.of(spec, Overlap.pipelined(8), 2)));
  }

  @Test
  void aSweepOverAFewRanksIsRefused() {
    LocalRanks.run(
        2,
        world -> {
          var tuner = Tuner.on(world).gemm(GemmSpec.gemmAllReduce(64, 16, 64));
          assertThatThrownBy(() -> tuner.sweepRanks(1, 2))
              .hasMessage("ranks must be 2..1024 but was 1; try sweepRanks(8)");
          assertThatThrownBy(() -> tuner.sweepRanks(4, 4))
              .hasMessage("ranks must be one or more different values but were (4, 4)");
        });
  }

  @Test
  void aSweepOfAnythingElseIsRefused() {
    LocalRanks.run(
        2,
        world -> {
          assertThatThrownBy(() -> Tuner.on(world).steps("code").step("one", () -> {}).sweep(1))
              .isInstanceOf(BraidException.class)
              .hasMessage(
                  "a sweep is over the rows or ranks of a GEMM and its overlaps but the tuner has steps, or no problem; begin with gemm(spec)");
          assertThatThrownBy(
                  () -> Tuner.on(world).gemm(GemmSpec.gemmAllReduce(4, 4, 4)).sweep(2, 2))
              .hasMessage("rows must be one or more different values but were (2, 2)");
          assertThatThrownBy(
                  () ->
                      Tuner.on(world)
                          .gemm(GemmSpec.gemmAllReduce(4, 4, 4))
                          .methods(Method.PIPELINED)
                          .splits(8)
                          .sweep(2, 8))
              .hasMessageStartingWith("splits must be 1..2 (rows of the output) but was 8");
        });
  }
}
