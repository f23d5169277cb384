package braid.internal.report.chart;

import static org.assertj.core.api.Assertions.assertThat;
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
import org.jfree.data.xy.IntervalXYDataset;
import org.junit.jupiter.api.Test;

class BreakdownChartTest {
  private static final long MICRO = 1_000;

  /// Returns a profile of iterations of 100 µs whose communication nothing hides.
  private static Profile profile(int rank, long... exposedMicros) {
    var spans = new ArrayList<Span>();
    var starts = new ArrayList<Long>();
    var nanos = new ArrayList<Long>();
    for (int i = 0; i < exposedMicros.length; i++) {
      long start = 100 * MICRO * i;
      starts.add(start);
      nanos.add(100 * MICRO);
      spans.add(
          new Span(
              i,
              0,
              Stage.COPY,
              "comm",
              start,
              start + exposedMicros[i] * MICRO,
              1,
              0,
              List.of(),
              "fetch"));
    }
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

  /// The bar is as long as the number in tables and headlines.
  @Test
  void theBarOfAConfigurationIsItsExposedCommunication() {
    var set = ProfileSet.of(List.of(profile(0, 10, 50, 20), profile(1, 30, 5, 40)));
    assertThat(set.exposedNanos()).isEqualTo(40.0 * MICRO);
    var chart = BreakdownChart.ofConfigurations(List.of("ring"), List.of(set.profiles()), "");
    var bars = (IntervalXYDataset) chart.getXYPlot().getDataset(0);
    assertThat(bars.getSeriesKey(0).toString()).isEqualTo("exposed communication");
    assertThat(bars.getEndXValue(0, 0) - bars.getStartXValue(0, 0)).isEqualTo(40, within(1e-9));
  }
}
