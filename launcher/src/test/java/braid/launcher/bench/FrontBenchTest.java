package braid.launcher.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import braid.launcher.cli.Braid;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/// Runs the benchmark on real processes with the fewest repeats that still yield results.
@Execution(ExecutionMode.CONCURRENT)
class FrontBenchTest {
  private static final FrontBench SMALLEST = new FrontBench(List.of(1, 2), 1, 1, 3, _ -> {});

  /// Returns the cells of the row that begins with a name.
  private static List<String> row(String report, String name) {
    return report
        .lines()
        .filter(line -> line.startsWith("| " + name))
        .findFirst()
        .map(line -> Arrays.stream(line.split("\\|", -1)).map(String::strip).toList())
        .orElseThrow();
  }

  private static double median(List<String> row, int column) {
    return Double.parseDouble(row.get(column).replaceAll(" .*", ""));
  }

  @Test
  void startsCellsAndMemoryAreMeasuredOnRealProcesses() throws Exception {
    var report = SMALLEST.report();
    double ready = median(row(report, "start to ranks ready"), 3);
    assertThat(ready).isPositive();
    // Rounded to three digits, both may be equal.
    assertThat(median(row(report, "start to the first result"), 3)).isGreaterThanOrEqualTo(ready);
    assertThat(median(row(report, "expression cell"), 2)).isPositive();
    assertThat(median(row(report, "printing cell"), 3)).isPositive();
    double rank = median(row(report, "an idle rank"), 3);
    assertThat(rank).isBetween(10.0, 1000.0);
    assertThat(median(row(report, "the front"), 3)).isGreaterThan(rank);
    assertThat(median(row(report, "processes"), 3)).isEqualTo(3);
    assertThat(row(report, "expression cell")).contains("25, not measured");
    // The remark about a missing ipyparallel appears exactly if it is missing.
    assertThat(report.contains(FrontProcess.PEER_REMEDY))
        .isEqualTo(row(report, "processes").get(5).equals("–"));
  }

  @Test
  void aLimitIsMetOrMissedByTheMedian() {
    assertThat(FrontBench.verdict(25.0, new Measure(25, 10, 90))).isEqualTo("25, met");
    assertThat(FrontBench.verdict(25.0, new Measure(26, 10, 90))).isEqualTo("25, MISSED");
    assertThat(FrontBench.words(new Measure(15.72, 13.7, 118.3))).isEqualTo("15.7 (13.7–118)");
    assertThat(FrontBench.words(null)).isEqualTo("–");
  }

  @Test
  void aChildThatEndsEarlyIsQuoted(@TempDir Path directory) throws Exception {
    var command = List.of("sh", "-c", "echo one; echo it broke >&2; exit 3");
    try (var child =
        new TimedChild("the child", command, Map.of(), directory, Duration.ofMinutes(5))) {
      assertThat(child.expect("one").seconds()).isPositive();
      assertThat(catchThrowable(child::next))
          .hasMessage("the child ended early; its last lines: it broke");
    }
  }

  @Test
  void aChildThatDoesNotEndIsEndedWithAllThatItStarted(@TempDir Path directory) throws Exception {
    var command = List.of("sh", "-c", "sleep 600 & echo up; wait");
    List<ProcessHandle> started;
    try (var child =
        new TimedChild("the child", command, Map.of(), directory, Duration.ofSeconds(5))) {
      child.expect("up");
      started = child.descendants();
      assertThat(started).hasSize(1);
    }
    // Init reaps orphans at any time, and until then they count as alive.
    var gone = started.stream().map(ProcessHandle::onExit).toArray(CompletableFuture[]::new);
    CompletableFuture.allOf(gone).join();
  }

  @Test
  void mistakesAreToldBeforeAnythingIsMeasured() {
    assertThat(refusal("--cells", "0"))
        .contains("--cells must be 1..10000 but was 0; try --cells 5");
  }

  private static String refusal(String... options) {
    var err = new StringWriter();
    var arguments = new ArrayList<>(List.of("bench", "front"));
    arguments.addAll(List.of(options));
    int code =
        Braid.commandLine().setErr(new PrintWriter(err)).execute(arguments.toArray(String[]::new));
    assertThat(code).isEqualTo(2);
    return err.toString();
  }
}
