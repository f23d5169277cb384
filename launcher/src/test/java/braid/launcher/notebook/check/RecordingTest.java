package braid.launcher.notebook.check;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.internal.report.progress.ProgressBar;
import braid.launcher.ExitCode;
import braid.launcher.cell.CellFailure;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.Notebooks;
import braid.launcher.notebook.Notebooks.Code;
import braid.launcher.notebook.run.CellResult;
import braid.launcher.notebook.run.CellResult.Status;
import braid.launcher.notebook.run.RunResult;
import braid.model.BraidException;
import braid.model.MimeBundle;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RecordingTest {
  private static final String BOOM =
      "{'output_type':'error','ename':'E','evalue':'at 7','traceback':[]}";

  private static void show(Notebook notebook, int cell, String outputs) {
    var code = notebook.codeCells().get(cell);
    code.clearOutputs().addAll(JsonParser.parseString(outputs.replace('\'', '"')).getAsJsonArray());
  }

  private static CellResult result(int number, Status status) {
    var failure =
        status == Status.FAILED
            ? Optional.of(new CellFailure(CellFailure.Cause.EXCEPTION, "E", "m", List.of()))
            : Optional.<CellFailure>empty();
    return new CellResult("cell " + number, "", status, Duration.ZERO, failure, "");
  }

  private static RunResult run(Status... statuses) {
    var cells = new ArrayList<CellResult>();
    for (var status : statuses) {
      cells.add(result(cells.size() + 1, status));
    }
    var failed = cells.stream().anyMatch(cell -> cell.status() == Status.FAILED);
    return new RunResult(
        "n",
        Path.of("o"),
        cells,
        failed ? ExitCode.CELL_FAILED : ExitCode.OK,
        Duration.ZERO,
        Optional.empty());
  }

  private static List<String> differences(String recorded, String now) {
    var notebook = Notebooks.of(new Code("1"));
    show(notebook, 0, recorded);
    var recording = Recording.of(notebook);
    show(notebook, 0, now);
    return recording.differences(notebook, run(Status.COMPLETED)).stream()
        .map(Difference::toString)
        .toList();
  }

  private static String shown(String type, String data) {
    return "[{'output_type':'" + type + "','data':{" + data + "},'metadata':{}}]";
  }

  private static String html(String columns, String cells) {
    return shown(
        "execute_result",
        "'text/plain':'x','text/html':'<table><thead><tr>%s</tr></thead><tbody><tr>%s</tr></tbody></table>'"
            .formatted(columns, cells));
  }

  @Test
  void numbersAndTextsMayDiffer() {
    assertThat(
            differences(
                "[{'output_type':'stream','name':'stdout','text':['took 3 ms\\n']}]",
                "[{'output_type':'stream','name':'stdout','text':'took 4 ms\\nand more'}]"))
        .isEmpty();
    assertThat(
            differences(
                html("<th>m</th><th class=a>ms<br><i>number</i></th>", "<td>1</td><td>2</td>"),
                html("<th>m</th><th>ms<br><i>integer</i></th>", "<td>5</td><td>6</td>")))
        .isEmpty();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "[{'output_type':'stream','name':'stderr','text':'a'}]|[]|printed text: expected stderr;"
            + " got none",
        "[{'output_type':'display_data','data':{'text/plain':'a'}}]|[]|number of displays:"
            + " expected 1; got 0",
        "[{'output_type':'display_data','data':{'image/png':'a','text/plain':'a'}}]|"
            + "[{'output_type':'display_data','data':{'text/plain':'a'}}]|display: expected"
            + " image/png + text/plain; got text/plain",
        "[{'output_type':'execute_result','data':{'text/plain':'a'}}]|[]|result: expected"
            + " text/plain; got none",
        "[{'output_type':'error','ename':'A','evalue':''}]|[{'output_type':'error','ename':'B'}]|"
            + "failure: expected A; got B",
        "[{'output_type':'error','ename':'A','evalue':''}]|[]|failure: expected A; got none",
      })
  void aDifferenceOfKindIsALine(String recorded, String now, String line) {
    assertThat(differences(recorded, now)).containsExactly("cell 1: " + line);
  }

  @Test
  void columnsAreComparedByName() {
    assertThat(
            differences(
                html("<th>m</th><th>gemm &amp; copy</th>", "<th>1</th><td>2</td>"),
                html("<th>m</th>", "<td>1</td>")))
        .containsExactly("cell 1: columns of table: expected m, gemm & copy; got m");
  }

  /// The columns that a comparison has only if the reference moved.
  @Test
  void columnsOfAVerdictMayComeAndGo() {
    var always = "<th>verdict</th><th>difference %</th>";
    var moved = always + "<th>÷ reference %</th><th>÷ from %</th><th>÷ to %</th>";
    assertThat(differences(html(always, ""), html(moved, ""))).isEmpty();
    assertThat(differences(html(moved, ""), html(always, ""))).isEmpty();
    assertThat(differences(html(moved, ""), html("<th>verdict</th>", "")))
        .containsExactly("cell 1: columns of table: expected verdict, difference %; got verdict");
  }

  @Test
  void columnsOfPrintedTablesAreComparedByName() {
    var printed =
        "[{'output_type':'stream','name':'stdout','text':' m | %s |\\n-----------\\n 1 | %s |'}]";
    assertThat(differences(printed.formatted("ms", "2.5"), printed.formatted("ms", "13")))
        .isEmpty();
    assertThat(differences(printed.formatted("ms", "2.5"), printed.formatted("us", "2.5")))
        .containsExactly("cell 1: columns of table: expected m, ms; got m, us");
  }

  /// Progress is shown where work takes long enough: under load it is there, else not.
  @Test
  void displaysOfProgressMayComeAndGo() {
    var result = "{'output_type':'execute_result','data':{'text/plain':'3'},'metadata':{}}";
    var progress = new ArrayList<MimeBundle>();
    var bar = new ProgressBar("tuning", 2, "building", System::nanoTime, progress::add);
    bar.finish("done");
    var json = new JsonArray();
    for (var bundle : progress) {
      var data = new JsonObject();
      bundle.data().forEach(data::addProperty);
      var output = new JsonObject();
      output.addProperty("output_type", "display_data");
      output.add("data", data);
      json.add(output);
    }
    json.add(JsonParser.parseString(result.replace('\'', '"')));
    var underLoad = json.toString().replace('\'', '`');

    assertThat(json).hasSize(3);
    assertThat(differences(underLoad, "[" + result + "]")).isEmpty();
    assertThat(differences("[" + result + "]", underLoad)).isEmpty();
    assertThat(differences("[" + result + "]", underLoad.replace("progress", "other")))
        .isNotEmpty();
  }

  @Test
  void laterCellsAreMissedAfterARecordedFailure() {
    var notebook = Notebooks.of(new Code("1"), new Code("2"));
    show(notebook, 0, "[" + BOOM + "]");
    var recording = Recording.of(notebook);
    var asRecorded = NotebookRun.checked(notebook, run(Status.FAILED, Status.PENDING), recording);
    assertThat(asRecorded.differences()).isEmpty();
    assertThat(asRecorded.exitCode()).isEqualTo(ExitCode.OK);

    show(notebook, 1, shown("execute_result", "'text/plain':'a'"));
    var more = Recording.of(notebook);
    show(notebook, 1, "[]");
    var missed = NotebookRun.checked(notebook, run(Status.FAILED, Status.PENDING), more);
    assertThat(missed.differences())
        .extracting(Difference::toString)
        .containsExactly("cell 2: outputs: expected some; got none, it was not run");
    assertThat(missed.exitCode()).isEqualTo(ExitCode.DIFFERENT);
  }

  @Test
  void aFailureThatIsNotRecordedKeepsItsExitCode() {
    var notebook = Notebooks.of(new Code("1"), new Code("2"));
    show(notebook, 0, shown("execute_result", "'text/plain':'a'"));
    var recording = Recording.of(notebook);
    show(notebook, 0, "[" + BOOM + "]");
    var run = NotebookRun.checked(notebook, run(Status.FAILED, Status.PENDING), recording);
    assertThat(run.differences())
        .extracting(Difference::toString)
        .containsExactly("cell 1: failure: expected none; got E");
    assertThat(run.exitCode()).isEqualTo(ExitCode.CELL_FAILED);
  }

  @Test
  void aNotebookWithoutOutputsIsNoRecording() {
    assertThatThrownBy(() -> Recording.of(Notebooks.of(new Code("1"))))
        .isInstanceOf(BraidException.class)
        .hasMessageStartingWith(
            "--check compares with the outputs stored in the notebook but test.ipynb has none;"
                + " record them: braid run test.ipynb --record");
  }
}
