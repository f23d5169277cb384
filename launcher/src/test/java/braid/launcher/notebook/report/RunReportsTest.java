package braid.launcher.notebook.report;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cell.CellFailure;
import braid.launcher.notebook.Notebook;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Reports that CI keeps: names that do not change, and a page in Markdown.
class RunReportsTest {
  private static final Facts FACTS =
      new Facts(Instant.EPOCH, "braid run", new LinkedHashMap<>(Map.of("ranks", "4")));

  @TempDir Path directory;

  private static Notebook notebook(String name, String... cells) {
    return Notebook.parse(
        "{'nbformat': 4, 'nbformat_minor': 5, 'metadata': {}, 'cells': [%s]}"
            .formatted(String.join(",", cells))
            .replace('\'', '"'),
        name);
  }

  private static String code(String id, String source) {
    return "{'cell_type': 'code', 'id': '%s', 'metadata': {}, 'source': '%s', 'outputs': [], 'execution_count': null}"
        .formatted(id, source);
  }

  private static String heading(String text) {
    return "{'cell_type': 'markdown', 'metadata': {}, 'source': '# %s'}".formatted(text);
  }

  @Test
  void namesSurviveNewCellsAndChangedCode() {
    var before =
        notebook(
            "a.ipynb",
            code("c0", "0"),
            heading("Tune"),
            code("c1", "1"),
            code("c2", "2"),
            heading("Read"),
            code("c3", "3"));
    var after =
        notebook(
            "a.ipynb",
            code("c0", "0"),
            code("new", "9"),
            heading("Tune"),
            code("c1", "changed"),
            code("c2", "2"),
            heading("Read"),
            code("c3", "3"));
    assertThat(CellNames.of(before)).containsExactly("cell c0", "Tune", "Tune [c2]", "Read");
    assertThat(CellNames.of(after)).containsAll(CellNames.of(before)).doesNotHaveDuplicates();
    assertThat(
            CellNames.of(
                notebook("a.ipynb", heading("A"), code("x", ""), heading("A"), code("x", ""))))
        .doesNotHaveDuplicates();
  }

  private static JsonObject manifest(Path file) {
    return JsonParser.parseString(
            """
            {"id": "20260131T235959000Z-0a1b2c", "manifest": "%s",
             "session": {"ranks": 4, "link": "1GB/s"}, "git": {"revision": "0123456789ab"},
             "data": [{"id": "20260131T235959001Z-0a1b2d", "kind": "study", "problem": "m 64",
                       "found": "4 splits: 20%% less | fine"}]}
            """
                .formatted(file))
        .getAsJsonObject();
  }

  @Test
  void aSuiteHasAStableNameAndThePropertiesOfItsRun() {
    var here = Path.of("").toAbsolutePath();
    var notebook = notebook(here.resolve("notebooks/a.ipynb").toString(), code("c", "1"));
    notebook.metadata().add("braid", manifest(directory.resolve("manifest.json")));
    assertThat(JUnitReport.xml(List.of(FinishedRun.of(notebook, Optional.empty())), FACTS))
        .contains("<testsuites tests=\"1\"")
        .contains("<testsuite name=\"notebooks/a.ipynb\"")
        .contains("<property name=\"run\" value=\"20260131T235959000Z-0a1b2c\"")
        .contains("<property name=\"ranks\" value=\"4\"", "<property name=\"link\" value=\"1GB/s\"")
        .contains("<property name=\"revision\" value=\"0123456789ab\"")
        .contains("<property name=\"headline\" value=\"m 64: 4 splits: 20% less | fine\"")
        .contains("<testcase classname=\"notebooks/a.ipynb\" name=\"cell c\"")
        .doesNotContain(here.toString());
  }

  @Test
  void theSummaryHasVerdictHeadlinesAndCharts() throws IOException {
    var run = Files.createDirectories(directory.resolve("runs/20260131T235959000Z-0a1b2c"));
    var study = Files.createDirectory(run.resolve("20260131T235959001Z-0a1b2d"));
    Files.writeString(study.resolve("splits.svg"), "<svg/>");
    var notebook = notebook("a.ipynb", code("c", "1"));
    notebook.metadata().add("braid", manifest(run.resolve("manifest.json")));
    var page = directory.resolve("summary.md");
    MarkdownSummary.write(List.of(FinishedRun.of(notebook, Optional.empty())), FACTS, page);
    assertThat(Files.readString(page))
        .startsWith("## Passed: a.ipynb in 1.00 s\n")
        .contains("| a.ipynb | passed | 1 of 1 | 1.00 s | 20260131T235959000Z-0a1b2c |")
        .contains(
            "| a.ipynb | m 64 | 4 splits: 20% less \\| fine |"
                + " [splits](<runs/20260131T235959000Z-0a1b2c/20260131T235959001Z-0a1b2d/splits.svg>)"
                + " |")
        .contains("- ranks: 4")
        .doesNotContain("went wrong");

    var failure =
        new CellFailure(
            CellFailure.Cause.EXCEPTION, "java.lang.Error", "a <b>\nc", List.of("trace"));
    MarkdownSummary.write(List.of(FinishedRun.of(notebook, Optional.of(failure))), FACTS, page);
    assertThat(Files.readString(page))
        .startsWith("## Failed: a.ipynb")
        .contains("| **failed** |", "- a.ipynb, cell 1: java.lang.Error: a \\<b\\> c\n");
  }
}
