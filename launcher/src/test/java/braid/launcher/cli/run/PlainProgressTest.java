package braid.launcher.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class PlainProgressTest {
  private long nanos;

  @Test
  void aSilentCellHasALineEveryTenSeconds() {
    var log = new StringWriter();
    try (var progress = new PlainProgress(new PrintWriter(log), () -> nanos)) {
      progress.started(1, 4);
      progress.cellStarted("cell 1", "sleep();");
      for (int second = 1; second <= 25; second++) {
        nanos = TimeUnit.SECONDS.toNanos(second);
        progress.tick();
        if (second == 12) {
          progress.cellProgressed("round 1 of 3");
        }
      }
    }
    assertThat(log.toString().lines())
        .containsExactly(
            "running 1 cell on 4 ranks",
            "cell 1 of 1: sleep();",
            "cell 1 of 1: runs for 10 s",
            "cell 1 of 1: runs for 20 s; round 1 of 3");
  }

  @Test
  void longWorkHasALineEveryFiveSeconds() {
    var log = new StringWriter();
    try (var progress = new PlainProgress(new PrintWriter(log), () -> nanos)) {
      progress.started(2, 4);
      progress.cellStarted("cell 1", "tune();");
      for (int second = 1; second <= 11; second++) {
        nanos = TimeUnit.SECONDS.toNanos(second);
        progress.cellProgressed("tuning " + second);
      }
      progress.cellStarted("cell 2", "again();");
      progress.cellNoted("rank 1 has not answered for 5 s");
      progress.cellProgressed("too early");
      progress.cellMeasured("2 splits: 3.1 ms, 20% less than unfused");
    }
    assertThat(log.toString().lines())
        .containsExactly(
            "running 2 cells on 4 ranks",
            "cell 1 of 2: tune();",
            "cell 1 of 2: tuning 5",
            "cell 1 of 2: tuning 10",
            "cell 2 of 2: again();",
            "cell 2 of 2: rank 1 has not answered for 5 s",
            "cell 2 of 2: found 2 splits: 3.1 ms, 20% less than unfused");
  }
}
