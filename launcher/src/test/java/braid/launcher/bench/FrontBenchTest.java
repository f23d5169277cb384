package braid.launcher.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import braid.launcher.bench.report.FrontReport;
import braid.launcher.bench.report.JsonReport;
import braid.launcher.bench.report.Machine;
import braid.launcher.bench.report.MarkdownReport;
import braid.launcher.bench.report.Measure;
import braid.launcher.bench.report.Row;
import braid.launcher.bench.report.TextReport;
import braid.launcher.cli.Braid;
import com.google.gson.JsonParser;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/// Runs the benchmark on real processes with the fewest repeats that still yield results.
@Execution(ExecutionMode.CONCURRENT)
class FrontBenchTest {
  private static Row row(FrontReport report, String beginning) {
    return report.rows().stream()
        .filter(row -> row.what().startsWith(beginning))
        .findFirst()
        .orElseThrow();
  }

  private static double median(Row row, int ranks) {
    return Optional.ofNullable(row.byRanks().get(ranks)).orElseThrow().median();
  }

  @Test
  void startsCellsAndMemoryAreMeasuredOnRealProcesses() throws Exception {
    var steps = new ArrayList<String>();
    var report = new FrontBench(List.of(1, 2), 1, 1, 3, steps::add).run();

    double ready = median(row(report, "start to ranks ready"), 2);
    double first = median(row(report, "start to the first result"), 2);
    assertThat(ready).isPositive();
    assertThat(first).isGreaterThan(ready);
    assertThat(median(row(report, "expression"), 1)).isPositive();
    assertThat(row(report, "printing").byRanks()).containsOnlyKeys(1, 2);
    assertThat(median(row(report, "an idle rank"), 2)).isBetween(10.0, 1000.0);
    assertThat(median(row(report, "the front"), 2))
        .isGreaterThan(median(row(report, "an idle rank"), 2));
    assertThat(median(row(report, "processes"), 2)).isEqualTo(3);
    assertThat(report.stages()).containsOnlyKeys(1, 2);
    assertThat(TextReport.stages(report)).contains("compile").contains("wait for their output");
    assertThat(TextReport.of(report)).contains("not measured");
    assertThat(steps).isNotEmpty();
    // The remark about a missing ipyparallel appears exactly if it is missing.
    assertThat(report.remarks())
        .anyMatch(
            remark ->
                remark.contains("ipyparallel")
                    && remark.contains(Ipyparallel.REMEDY)
                        == row(report, "processes").peer().isEmpty());
  }

  @Test
  void aLimitIsMetOrMissedByTheMedianAtItsRanks() {
    var limit = Optional.of(new Row.Limit(25, 4));
    var measures = Map.of(4, new Measure(25, 10, 90, 50), 8, new Measure(26, 10, 90, 50));
    assertThat(new Row("a", "ms", measures, limit, Optional.empty()).verdict())
        .contains(Row.Verdict.MET);
    assertThat(
            new Row("a", "ms", measures, Optional.of(new Row.Limit(25, 8)), Optional.empty())
                .verdict())
        .contains(Row.Verdict.MISSED);
    assertThat(new Row("a", "ms", Map.of(), limit, Optional.empty()).verdict())
        .contains(Row.Verdict.UNMEASURED);
  }

  @Test
  void allFacesShowTheSameMeasures() {
    var report =
        new FrontReport(
            Machine.here(),
            List.of(1, 4),
            List.of(
                new Row(
                    "expression cell",
                    "ms",
                    Map.of(4, new Measure(15.72, 13.7, 18.3, 50)),
                    Optional.of(new Row.Limit(25, 4)),
                    Optional.of(new Measure(10, 9, 12, 50)))),
            Map.of(),
            List.of("a remark"));
    assertThat(TextReport.of(report))
        .contains("15.7 (13.7–18.3)", "25 at 4", "met", "10 (9–12)", "1.57", "a remark");
    assertThat(MarkdownReport.of(report))
        .contains(
            "| expression cell, ms | – | 15.7 (13.7–18.3) | 25 at 4 | met | 10 (9–12) | 1.57 |");
    var row =
        JsonParser.parseString(JsonReport.of(report))
            .getAsJsonObject()
            .getAsJsonArray("rows")
            .get(0)
            .getAsJsonObject();
    assertThat(row.getAsJsonObject("braid").getAsJsonObject("4").get("median").getAsDouble())
        .isEqualTo(15.72);
    assertThat(row.get("verdict").getAsString()).isEqualTo("met");
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
  void mistakesAreToldBeforeAnythingIsMeasured(@TempDir Path directory) {
    assertThat(refusal("--cells", "0"))
        .contains("--cells must be 1..10000 but was 0; try --cells 5");
    assertThat(refusal("--markdown", directory.resolve("no/such/front.md").toString()))
        .contains("--markdown must be a file to write but ")
        .contains("is in a directory that does not exist; try mkdir -p");
    assertThat(directory).isEmptyDirectory();
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
