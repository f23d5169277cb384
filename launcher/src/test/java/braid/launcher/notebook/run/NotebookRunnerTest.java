package braid.launcher.notebook.run;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.report.value.Caveats;
import braid.launcher.ExitCode;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.NotebookCell;
import braid.launcher.notebook.Notebooks;
import braid.launcher.notebook.Notebooks.Code;
import braid.launcher.notebook.ParameterCell;
import braid.launcher.notebook.check.NotebookRun;
import braid.launcher.notebook.parameters.Parameters;
import braid.launcher.notebook.report.Facts;
import braid.launcher.notebook.report.JUnitReport;
import braid.launcher.notebook.run.CellResult.Status;
import braid.launcher.session.Session;
import braid.launcher.session.SessionOptions;
import braid.model.BackendKind;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Runs notebooks on two real ranks. The tests share a session to save starts.
class NotebookRunnerTest {
  private static final Facts NO_FACTS =
      new Facts(Instant.EPOCH, "braid run", new LinkedHashMap<>());
  private static final Duration SHORT = Duration.ofMillis(700);
  private static final Code ENDLESS = new Code("while (true) Thread.sleep(1);");

  @TempDir static Path home;
  private static Session session;

  @TempDir Path directory;

  @BeforeAll
  static void start() {
    session = start(2);
  }

  private static Session start(int ranks) {
    return Session.start(new SessionOptions(ranks, BackendKind.HOST, Optional.empty(), home));
  }

  @AfterAll
  static void close() {
    session.close();
  }

  /// Records the events it receives.
  private static class RecordedProgress implements RunProgress {
    final List<String> events = new ArrayList<>();

    @Override
    public void started(int cells, int ranks) {
      events.add("started " + cells + " on " + ranks);
    }

    @Override
    public void cellStarted(String name, String firstLine) {
      events.add(name + " " + firstLine);
    }

    @Override
    public synchronized void cellProgressed(String line) {
      events.add(line);
    }

    @Override
    public synchronized void cellNoted(String line) {
      events.add(line);
    }

    @Override
    public void cellFinished(CellResult cell) {
      events.add(cell.name() + " " + cell.status());
    }
  }

  private Path out() {
    return directory.resolve("out.ipynb");
  }

  private RunResult run(Notebook notebook, TimeLimits limits) throws IOException {
    return new NotebookRunner(notebook, out(), limits, new RecordedProgress()).run(session);
  }

  private RunResult run(Code... cells) throws IOException {
    return run(Notebooks.of(cells), TimeLimits.none());
  }

  /// Returns a cell of the saved output notebook.
  private NotebookCell saved(int index) {
    return Notebook.read(out()).cells().get(index);
  }

  private JsonObject output(int cell, int output) {
    return saved(cell).outputs().get(output).getAsJsonObject();
  }

  @Test
  void progressOfLongWorkIsReportedInWordsAsItIsShown() throws IOException {
    var heard = new RecordedProgress();
    var notebook =
        Notebooks.of(
            new Code(
                """
                %%rank 0
                for (var text : List.of("[██··] tuning 1/2 · splits=4", "[████] tuning 2/2 · splits=8"))
                  display(braid.model.MimeBundle.text(text).asProgress());
                display("no progress");
                """));
    new NotebookRunner(notebook, out(), TimeLimits.none(), heard).run(session);
    assertThat(heard.events)
        .containsExactly(
            "started 1 on 2",
            "cell 1 %%rank 0",
            "tuning 1/2 · splits=4",
            "tuning 2/2 · splits=8",
            "cell 1 COMPLETED");
  }

  @Test
  void aFrozenRankIsNotedBeforeItsCellEnds() throws IOException {
    var heard =
        new RecordedProgress() {
          /// Continues the rank, without which the cell would not end.
          @Override
          public synchronized void cellNoted(String line) {
            super.cellNoted(line);
            if (line.contains("kill -CONT ")) {
              long pid = Long.parseLong(line.replaceFirst(".*kill -CONT (\\d+) .*", "$1"));
              try {
                var _ = new ProcessBuilder("kill", "-CONT", "" + pid).start();
              } catch (IOException e) {
                throw new UncheckedIOException(e);
              }
            }
          }
        };
    var notebook =
        Notebooks.of(
            new Code(
                """
                if (world.rank() == 1) {
                  new ProcessBuilder("kill", "-STOP", "" + ProcessHandle.current().pid()).start().waitFor();
                }
                world.barrier();
                """));
    new NotebookRunner(notebook, out(), TimeLimits.none(), heard).run(session);
    assertThat(heard.events.get(2)).matches("rank 1 \\(pid \\d+\\) has not answered for .*");
    assertThat(heard.events).last().isEqualTo("cell 1 COMPLETED");
    assertThat(text(output(0, 0))).startsWith(heard.events.get(2));
  }

  @Test
  void progressOfALoopInTheFrontIsReportedAndSavedAsOneDisplay() throws IOException {
    var heard = new RecordedProgress();
    var notebook =
        Notebooks.of(
            new Code(
                "%%front\nfor (var n : progress(List.of(1, 2), \"sizes\")) { int twice = 2 * n; }"));
    new NotebookRunner(notebook, out(), TimeLimits.none(), heard).run(session);
    var lines = heard.events.stream().filter(event -> event.startsWith("sizes ")).toList();
    assertThat(lines.getFirst()).startsWith("sizes 0/2 · starting · ");
    assertThat(lines.getLast()).startsWith("sizes 2/2 · done · ");
    assertThat(saved(0).outputs()).hasSize(1);
    assertThat(output(0, 0).getAsJsonObject("data").get("text/plain").toString())
        .contains("sizes 2/2 · done");
  }

  private String status(int cell) {
    return saved(cell).metadata().getAsJsonObject("papermill").get("status").getAsString();
  }

  private static String text(JsonObject output) {
    var lines = new StringBuilder();
    output.getAsJsonArray("text").forEach(line -> lines.append(line.getAsString()));
    return lines.toString();
  }

  @Test
  void outputsAreSavedAsByJupyter() throws IOException {
    var result =
        run(
            new Code("System.out.println(\"a\"); System.out.println(\"b\");"),
            new Code("   "),
            new Code("6 * 7"));
    assertThat(result.exitCode()).isEqualTo(ExitCode.OK);
    assertThat(result.cells()).extracting(CellResult::name).containsExactly("cell 1", "cell 2");
    assertThat(saved(0).outputs()).hasSize(1);
    assertThat(output(0, 0).get("output_type").getAsString()).isEqualTo("stream");
    assertThat(output(0, 0).get("name").getAsString()).isEqualTo("stdout");
    assertThat(output(0, 0).get("text")).isEqualTo(NotebookCell.lines("a\nb\n"));
    var shown = output(2, 0);
    assertThat(shown.get("output_type").getAsString()).isEqualTo("execute_result");
    assertThat(shown.get("execution_count").getAsInt()).isEqualTo(2);
    assertThat(shown.getAsJsonObject("data").get("text/plain")).isEqualTo(NotebookCell.lines("42"));
    assertThat(saved(2).json().get("execution_count").getAsInt()).isEqualTo(2);
  }

  @Test
  void anOutputNotebookKeepsMetadataOfPapermillAndJupyter() throws IOException {
    run(new Code("1"));
    var metadata = Notebook.read(out()).metadata();
    assertThat(metadata.getAsJsonObject("kernelspec").get("name").getAsString()).isEqualTo("braid");
    assertThat(metadata.getAsJsonObject("language_info").get("name").getAsString())
        .isEqualTo("java");
    var run = metadata.getAsJsonObject("papermill");
    assertThat(run.keySet())
        .contains("parameters", "input_path", "output_path", "start_time", "end_time", "duration");
    assertThat(run.get("exception").getAsBoolean()).isFalse();
    var cell = saved(0).metadata();
    assertThat(cell.getAsJsonObject("papermill").get("duration").getAsDouble()).isPositive();
    assertThat(status(0)).isEqualTo("completed");
    assertThat(cell.getAsJsonObject("execution").keySet())
        .contains("iopub.status.busy", "iopub.status.idle", "shell.execute_reply");
  }

  @Test
  void laterCellsArePendingAfterAFailure() throws IOException {
    var result =
        run(
            new Code("System.err.println(\"before\"); throw new IllegalStateException(\"boom\");"),
            new Code("2"),
            new Code("3", "skip-execution"));
    assertThat(result.exitCode()).isEqualTo(ExitCode.CELL_FAILED);
    assertThat(result.cells())
        .extracting(CellResult::status)
        .containsExactly(Status.FAILED, Status.PENDING, Status.SKIPPED);
    assertThat(result.cells().getFirst().printed()).contains("before");
    var error = output(0, saved(0).outputs().size() - 1);
    assertThat(error.get("output_type").getAsString()).isEqualTo("error");
    assertThat(error.get("ename").getAsString()).isEqualTo("java.lang.IllegalStateException");
    assertThat(error.get("evalue").getAsString()).isEqualTo("boom");
    assertThat(error.getAsJsonArray("traceback")).isNotEmpty();
    assertThat(List.of(status(0), status(1), status(2)))
        .containsExactly("failed", "pending", "skipped");
    assertThat(saved(1).outputs()).isEmpty();
    assertThat(
            Notebook.read(out())
                .metadata()
                .getAsJsonObject("papermill")
                .get("exception")
                .getAsBoolean())
        .isTrue();
  }

  @Test
  void goesOnAfterACellThatMayFail() throws IOException {
    var result =
        run(
            new Code("int y = 1 / 0;", "raises-exception"),
            new Code("never()", "skip-execution"),
            new Code("2"));
    assertThat(result.exitCode()).isEqualTo(ExitCode.OK);
    assertThat(result.cells())
        .extracting(CellResult::status)
        .containsExactly(Status.COMPLETED, Status.SKIPPED, Status.COMPLETED);
    assertThat(result.cells().getFirst().failedAsExpected()).isTrue();
    assertThat(output(0, 0).get("output_type").getAsString()).isEqualTo("error");
  }

  @Test
  void aSkippedCellKeepsItsOutputs() throws IOException {
    var notebook = Notebooks.of(new Code("1", "skip-execution"), new Code("2"));
    for (var cell : notebook.cells()) {
      cell.outputs().add(new JsonObject());
    }
    run(notebook, TimeLimits.none());
    assertThat(saved(0).outputs()).containsExactly(new JsonObject());
    assertThat(saved(1).outputs()).doesNotContain(new JsonObject());
  }

  @Test
  void parametersHaveTheirTypes() throws IOException {
    var notebook =
        Notebooks.of(
            new Code(
                """
                int[][] grid = {};
                List<Integer> streams = List.of();
                Map<String, Double> sizes = Map.of();
                Map<String, Object> deep = Map.of();
                String link = "";
                double ratio = 0;
                var mixed = List.of(1, "a");
                long bytes = 0;""",
                "parameters"),
            new Code("Arrays.deepToString(grid) + streams + sizes + deep + ratio + mixed + bytes"),
            new Code("link.chars().boxed().toList()"));
    ParameterCell.inject(
        Parameters.given()
            .typed("grid=[[1], [2, 3]]")
            .typed("streams=[1, null]")
            .typed("sizes={b: 1, a: 2.5}")
            .typed("deep={a: 1, b: [x, 2], c: {d: true, e: null}, f: null}")
            .typed("ratio=.nan")
            .typed("mixed=[1, a, 2.5]")
            .typed("bytes=1")
            .raw("link=\"\\\t\nü\u2028\ud83d\ude00")
            .build(),
        notebook);
    assertThat(run(notebook, TimeLimits.none()).exitCode()).isEqualTo(ExitCode.OK);
    assertThat(output(2, 0).toString())
        .contains(
            "[[1], [2, 3]][1, null]{a=2.5, b=1.0}{a=1, b=[x, 2], c={d=true, e=null}, f=null}NaN[1, a, 2.5]1");
    assertThat(output(3, 0).toString()).contains("[34, 92, 9, 10, 252, 8232, 55357, 56832]");
  }

  @Test
  void reportsProgressInOrder() throws IOException {
    var progress = new RecordedProgress();
    new NotebookRunner(
            Notebooks.of(
                new Code("// a\n1"),
                new Code("2", "skip-execution"),
                new Code("throw new Error();")),
            out(),
            TimeLimits.none(),
            progress)
        .run(session);
    assertThat(progress.events)
        .containsExactly(
            "started 2 on 2",
            "cell 1 1",
            "cell 1 COMPLETED",
            "cell 2 throw new Error();",
            "cell 2 FAILED");
  }

  /// Reads the file on disk during the run.
  @Test
  void theNotebookIsSavedAfterEveryCell() throws IOException {
    var seen = new ArrayList<String>();
    var watching =
        new RecordedProgress() {
          @Override
          public void cellStarted(String name, String firstLine) {
            seen.add(status(0) + " " + status(1));
          }

          @Override
          public void cellFinished(CellResult cell) {
            seen.add(status(0) + " " + status(1));
          }
        };
    new NotebookRunner(
            Notebooks.of(new Code("1"), new Code("2")), out(), TimeLimits.none(), watching)
        .run(session);
    assertThat(seen)
        .containsExactly(
            "pending pending", "completed pending", "completed pending", "completed completed");
  }

  @Test
  void aCellThatTakesTooLongIsEnded() throws IOException {
    var result =
        run(
            Notebooks.of(new Code(ENDLESS.source(), "raises-exception")),
            new TimeLimits(Optional.of(SHORT), Optional.empty()));
    assertThat(result.exitCode()).isEqualTo(ExitCode.TIMEOUT);
    assertThat(output(0, 0).get("ename").getAsString()).isEqualTo("Timeout");
    assertThat(output(0, 0).get("evalue").getAsString())
        .isEqualTo("cell 1 must end within --cell-timeout 0.7 s but did not; it was interrupted");
    assertThat(run(new Code("1")).exitCode()).as("the session lives").isEqualTo(ExitCode.OK);
  }

  /// The limit leaves a busy machine time to compile the cell and to begin it on both ranks.
  @Test
  void aCellThatIgnoresItsLimitLosesItsRanks() throws IOException {
    try (var mortal = start(2)) {
      var result =
          new NotebookRunner(
                  Notebooks.of(
                      new Code("1"),
                      new Code("new java.util.concurrent.Semaphore(0).acquireUninterruptibly();")),
                  out(),
                  new TimeLimits(Optional.of(Duration.ofSeconds(8)), Optional.empty()),
                  new RecordedProgress())
              .run(mortal);
      assertThat(result.exitCode()).isEqualTo(ExitCode.TIMEOUT);
    }
    assertThat(output(1, 0).get("evalue").getAsString())
        .isEqualTo(
            "cell 2 must end within --cell-timeout 8 s but did not;"
                + " it ignored an interrupt for 3 s, so its ranks were ended");
    assertThat(output(1, 0).get("traceback").toString())
        .contains("cell 2 was interrupted, line 1; all 2 ranks did not stop and were ended");
  }

  @Test
  void aCellStopsWithinATenthOfItsLimit() {
    var graces =
        Stream.of(0.5, 9.0, 60.0, 100.0, 3600.0)
            .map(seconds -> TimeLimits.grace(Duration.ofMillis((long) (seconds * 1000))));
    assertThat(graces.map(TimeLimits::seconds)).containsExactly("3", "3", "6", "10", "10");
    var limits =
        new TimeLimits(Optional.of(Duration.ofHours(1)), Optional.of(Duration.ofSeconds(60)));
    assertThat(limits.nearest().orElseThrow().grace()).isEqualTo(Duration.ofSeconds(6));
  }

  @Test
  void aRunThatTakesTooLongIsEnded() throws IOException {
    var result =
        run(
            Notebooks.of(ENDLESS, new Code("1")),
            new TimeLimits(Optional.of(Duration.ofHours(1)), Optional.of(SHORT)));
    assertThat(result.exitCode()).isEqualTo(ExitCode.TIMEOUT);
    assertThat(output(0, 0).get("evalue").getAsString()).contains("--timeout 0.7 s");
    assertThat(status(1)).isEqualTo("pending");
  }

  @Test
  void noCellStartsAfterTheLastMoment() throws IOException {
    var result =
        run(
            Notebooks.of(new Code("1")),
            new TimeLimits(Optional.empty(), Optional.of(Duration.ofNanos(1))));
    assertThat(result.exitCode()).isEqualTo(ExitCode.TIMEOUT);
    assertThat(output(0, 0).get("evalue").getAsString()).endsWith("; it was not started");
  }

  @Test
  void aRunEndsOnRequest() throws Exception {
    var running = new CountDownLatch(1);
    var progress =
        new RecordedProgress() {
          @Override
          public void cellStarted(String name, String firstLine) {
            running.countDown();
          }
        };
    var runner =
        new NotebookRunner(
            Notebooks.of(ENDLESS, new Code("1")), out(), TimeLimits.none(), progress);
    var stopper =
        Thread.ofVirtual()
            .start(
                () -> {
                  try {
                    running.await();
                    runner.stop("enough");
                  } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                  }
                });
    var result = runner.run(session);
    stopper.join();
    assertThat(result.exitCode()).isEqualTo(ExitCode.CELL_FAILED);
    assertThat(output(0, 0).get("ename").getAsString()).isEqualTo("Interrupted");
    assertThat(output(0, 0).get("evalue").getAsString()).startsWith("cell 1: enough; it was ");
    assertThat(status(1)).isEqualTo("pending");
  }

  @Test
  void aDeadRankIsNamed() throws IOException {
    try (var mortal = start(2)) {
      var result =
          new NotebookRunner(
                  Notebooks.of(
                      new Code(
                          "if (System.getenv(\"RANK\").equals(\"1\")) Runtime.getRuntime().halt(9);"
                              + " while (true) Thread.sleep(1);"),
                      new Code("1")),
                  out(),
                  TimeLimits.none(),
                  new RecordedProgress())
              .run(mortal);
      assertThat(result.exitCode()).isEqualTo(ExitCode.RANK_DIED);
    }
    assertThat(output(0, 0).toString()).contains("rank 1").contains("code 9");
    assertThat(status(1)).isEqualTo("pending");
  }

  @Test
  void aFailedVerificationDiffersFromOtherFailures() throws IOException {
    var result = run(new Code("throw new braid.model.VerificationFailed(\"c[0][1] differs\");"));
    assertThat(result.exitCode()).isEqualTo(ExitCode.VERIFICATION_FAILED);
  }

  @Test
  void nobodyAnswersACell() throws IOException {
    var result = run(new Code("System.in.read()"));
    assertThat(result.cells()).hasSize(1);
    assertThat(text(output(0, 0))).contains("a headless run has no input");
  }

  @Test
  void theJUnitReportNotesThatRanksShareAGpu() throws IOException {
    var notebook = Notebooks.of(new Code("1"));
    var result = run(notebook, TimeLimits.none());
    var file = directory.resolve("shared.xml");
    var facts =
        new Facts(Instant.EPOCH, "braid run", new LinkedHashMap<>(Map.of("times", Caveats.SHARED)));
    JUnitReport.write(List.of(NotebookRun.unchecked(notebook, result)), facts, file);
    var property = Xml.parse(file).getDocumentElement().getElementsByTagName("property").item(0);
    assertThat(property.getAttributes().getNamedItem("value").getTextContent())
        .isEqualTo("ranks share a GPU: order and correctness only");
  }

  @Test
  void reportsToJUnit() throws IOException {
    var notebook =
        Notebooks.of(
            new Code("System.out.println(\"<&\\u0007>\");"),
            new Code("throw new RuntimeException(\"a < b\");"),
            new Code("3"),
            new Code("4", "skip-execution"));
    var result = run(notebook, TimeLimits.none());
    var file = directory.resolve("junit.xml");
    JUnitReport.write(List.of(NotebookRun.unchecked(notebook, result)), NO_FACTS, file);
    var suite = Xml.parse(file).getDocumentElement();
    assertThat(suite.getElementsByTagName("property").getLength()).isZero();
    assertThat(suite.getAttribute("tests")).isEqualTo("4");
    assertThat(suite.getAttribute("failures")).isEqualTo("1");
    assertThat(suite.getAttribute("skipped")).isEqualTo("2");
    var cases = suite.getElementsByTagName("testcase");
    assertThat(cases.getLength()).isEqualTo(4);
    assertThat(suite.getElementsByTagName("system-out").item(0).getTextContent())
        .isEqualTo("<&\ufffd>\n");
    var failure = suite.getElementsByTagName("failure").item(0);
    assertThat(failure.getAttributes().getNamedItem("message").getTextContent()).isEqualTo("a < b");
    assertThat(failure.getTextContent()).contains("RuntimeException");
  }
}
