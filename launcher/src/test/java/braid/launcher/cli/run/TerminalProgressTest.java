package braid.launcher.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cell.CellFailure;
import braid.launcher.notebook.run.CellResult;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class TerminalProgressTest {
  private final StringWriter screen = new StringWriter();

  private static CellResult cell(CellResult.Status status, Optional<CellFailure> failure) {
    return new CellResult("cell 1", "int m;", status, Duration.ofSeconds(1), failure, "printed\n");
  }

  @Test
  void progressFitsOneLineForAnyCode() {
    try (var progress = new TerminalProgress(new PrintWriter(screen), 72)) {
      assertThat(progress.line(Duration.ZERO)).isEqualTo("starting the ranks");
      progress.started(4, 2);
      progress.cellStarted("cell 1", "int m = 1;");
      progress.cellFinished(cell(CellResult.Status.COMPLETED, Optional.empty()));
      progress.cellStarted("cell 2", "var pipe = Pipeline.on(group).gemm(spec).overlap(how);");
      assertThat(progress.line(Duration.ofSeconds(75)))
          .isEqualTo("[#####---------------] cell 2 of 4 var pipe = Pipel…  2 ranks  1:15 min")
          .hasSizeLessThan(73);
    }
    assertThat(screen.toString()).doesNotContain("\n").endsWith("\r\u001b[K");
  }

  @Test
  void aResultStaysOnTheScreen() {
    try (var progress = new TerminalProgress(new PrintWriter(screen), 72)) {
      progress.started(1, 1);
      progress.cellStarted("cell 1", "tune();");
      progress.cellMeasured("2 splits: 3.1 ms");
    }
    assertThat(screen.toString()).contains("\r\u001b[Kfound   2 splits: 3.1 ms\n");
  }

  @Test
  void aFailureStaysOnTheScreen() {
    var failure =
        new CellFailure(CellFailure.Cause.EXCEPTION, "E", "boom", List.of("E: boom", "at line 1"));
    try (var progress = new TerminalProgress(new PrintWriter(screen), 72)) {
      progress.started(1, 1);
      progress.cellStarted("cell 1", "int m;");
      progress.cellFinished(cell(CellResult.Status.FAILED, Optional.of(failure)));
    }
    assertThat(screen.toString())
        .contains("braid: cell 1 failed: int m;\n  | printed\n  E: boom\n  at line 1\n");
  }
}
