package braid.launcher.bench.life;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// 500 cells in a row on 4 ranks leave nothing behind; `braid bench life` says how long they take.
class LifeRunTest {
  private static final int RANKS = 4;
  private static final int WARM_UP = 50;
  private static final int CELLS = 450;

  /// A JVM starts and ends threads of its compilers as it likes.
  private static final int SPARE_THREADS = 6;

  /// A JVM opens a jar or a class file late; a leak of a cell's would be hundreds.
  private static final int SPARE_FILES = 6;

  @TempDir Path home;

  @Test
  void fiveHundredCellsLeaveNoThreadAndNoFileOpen() {
    try (var session = Session.start(new SessionOptions(RANKS, "host", Optional.empty(), home))) {
      var run = LifeRun.of(session, WARM_UP, CELLS, _ -> {});
      assertThat(run.millis()).hasSize(CELLS);
      assertThat(run.warm().threads()).hasSizeGreaterThanOrEqualTo(1 + RANKS);
      grewByNoMore(run.warm().threads(), run.end().threads(), SPARE_THREADS);
      grewByNoMore(run.warm().files(), run.end().files(), SPARE_FILES);
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
