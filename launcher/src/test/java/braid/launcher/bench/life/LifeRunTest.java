package braid.launcher.bench.life;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.selftest.Sweep;
import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import braid.model.BackendKind;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

/// Checks that hundreds of cells in a row on 2 ranks leak nothing; `braid bench life` measures
/// their time.
@Isolated
class LifeRunTest {
  private static final int RANKS = 2;
  private static final int WARM_UP = 50;
  private static final int CELLS = Sweep.times(150, 450);

  /// Number of cells per kind is 90, so a kind that leaks one thread or file per cell leaks 90. A
  /// JVM starts and ends compiler and collector threads at any time and opens jars late; both are
  /// fewer than this.
  private static final int SPARE = 45;

  @TempDir Path home;

  @Test
  @Timeout(1_200)
  void manyCellsLeaveNoThreadAndNoFileOpen() {
    try (var session =
        Session.start(new SessionOptions(RANKS, BackendKind.HOST, Optional.empty(), home))) {
      var run = LifeRun.of(session, WARM_UP, CELLS, _ -> {});
      assertThat(run.millis()).hasSize(CELLS);
      assertThat(run.warm().threads()).hasSizeGreaterThanOrEqualTo(1 + RANKS);
      grewByNoMore(run.warm().threads(), run.end().threads(), SPARE);
      grewByNoMore(run.warm().files(), run.end().files(), SPARE);
      System.out.printf("last 50 cells over first 50: %.2f%n", run.growth());
    }
  }

  private static void grewByNoMore(List<Integer> warm, List<Integer> end, int spare) {
    assertThat(end).hasSameSizeAs(warm);
    for (int i = 0; i < warm.size(); i++) {
      assertThat(end.get(i)).as("process %d", i).isLessThanOrEqualTo(warm.get(i) + spare);
    }
  }
}
