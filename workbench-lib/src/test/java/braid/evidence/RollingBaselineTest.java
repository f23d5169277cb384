package braid.evidence;

import static org.assertj.core.api.Assertions.assertThat;

import braid.evidence.Comparison.Verdict;
import braid.model.Overlap;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

/// A run beside a baseline of five runs, whose starts differ by more than their rounds do.
class RollingBaselineTest {
  private static final int TRIALS = 200;
  private static final int RUNS = 5;
  private static final double BETWEEN_STARTS = 0.02;
  private static final double BETWEEN_ROUNDS = 0.004;

  private static Study<Overlap> run(Random random, double factor) {
    var columns = new ArrayList<List<Long>>();
    for (double nanos : new double[] {100e6, 100e6, 80e6 * factor}) {
      columns.add(List.of());
      double start = nanos * (1 + BETWEEN_STARTS * random.nextGaussian());
      var times = new ArrayList<Long>();
      for (int round = 0; round < 12; round++) {
        times.add(Math.round(start * (1 + BETWEEN_ROUNDS * random.nextGaussian())));
      }
      columns.set(columns.size() - 1, times);
    }
    return new Study<>(
        new LinkedHashMap<>(Map.of("m", "64")),
        2,
        1,
        columns.get(0),
        columns.get(0).reversed(),
        List.of(new Study.Trial<>(Overlap.pipelined(2), columns.get(2))),
        Overlap.unfused());
  }

  /// Returns the number of trials in which the overlap of the judged run has a verdict.
  private static int count(double factor, int runs, Verdict... verdicts) {
    var random = new Random(29);
    int count = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
      var baseline = new ArrayList<Study<?>>();
      for (int i = 0; i < runs; i++) {
        baseline.add(run(random, 1));
      }
      var comparison = Comparison.of(Comparison.pooled(baseline), run(random, factor));
      count += List.of(verdicts).contains(comparison.rows().getLast().verdict()) ? 1 : 0;
    }
    return count;
  }

  @Test
  void differencesBetweenStartsAreNoSlowdown() {
    int pooled = count(1, RUNS, Verdict.SLOW, Verdict.FAST);
    assertThat(pooled).isLessThanOrEqualTo(TRIALS / 20);
    // One earlier run cannot show them.
    assertThat(count(1, 1, Verdict.SLOW, Verdict.FAST)).isGreaterThan(2 * pooled);
  }

  @Test
  void aLargeSlowdownIsFound() {
    assertThat(count(1.2, RUNS, Verdict.SLOW)).isGreaterThan(TRIALS * 9 / 10);
  }
}
