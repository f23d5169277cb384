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
import java.util.LinkedHashMap;
import java.util.List;
import java.util.TreeMap;
import java.util.stream.IntStream;
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
            new Crossovers.Range(64, 128, "unfused"),
            new Crossovers.Range(512, 512, "undecided"),
            new Crossovers.Range(1024, 1024, "pipelined"),
            new Crossovers.Range(4096, 4096, "ring"));
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

  @Test
  void aSweepOfAnythingElseIsRefused() {
    LocalRanks.run(
        2,
        world -> {
          assertThatThrownBy(() -> Tuner.on(world).steps("code").step("one", () -> {}).sweep(1))
              .isInstanceOf(BraidException.class)
              .hasMessage(
                  "a sweep is over the rows of a GEMM and its overlaps but the tuner has steps, or no problem; begin with gemm(spec)");
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
