package braid.launcher.notebook.report;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.cell.CellFailure;
import braid.launcher.notebook.Notebook;
import braid.launcher.notebook.check.NotebookRun;
import com.google.gson.JsonParser;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class HtmlReportTest {
  private static final CellFailure FAILURE =
      new CellFailure(
          CellFailure.Cause.EXCEPTION,
          "java.lang.ArrayIndexOutOfBoundsException",
          "Index 3 out of bounds for length 3",
          List.of("rank 1 failed in cell 2, line 3", "", "ArrayIndexOutOfBoundsException: …"));

  private static Notebook notebook(String name, String heading, int codeCells) {
    var cells = new ArrayList<String>();
    cells.add("{'cell_type': 'markdown', 'metadata': {}, 'source': '" + heading + "'}");
    for (int i = 0; i < codeCells; i++) {
      cells.add(
          "{'cell_type': 'code', 'metadata': {}, 'source': '%d', 'outputs': [], 'execution_count': null}"
              .formatted(i));
    }
    return Notebook.parse(
        "{'nbformat': 4, 'nbformat_minor': 4, 'metadata': {}, 'cells': [%s]}"
            .formatted(String.join(",", cells))
            .replace('\'', '"'),
        name);
  }

  private static String html(NotebookRun... runs) {
    return HtmlReport.html(
        List.of(runs), new Facts(Instant.EPOCH, "braid run", new LinkedHashMap<>()));
  }

  @Test
  void theFirstHeadingIsTheTitle() {
    assertThat(
            html(
                FinishedRun.of(
                    notebook("a.ipynb", "Text\\n\\n# Splits of *one* <GEMM>", 1),
                    Optional.empty())))
        .contains("<title>Passed: Splits of one &lt;GEMM&gt;</title>")
        .contains("<span class=\"verdict\">Passed</span> Splits of one &lt;GEMM&gt;</h1>")
        .contains(" · a.ipynb · 1 cell, none failed</p>")
        .contains("<li class=\"heading\">Splits of one &lt;GEMM&gt;</li>\n<li class=\"ok\">")
        .contains("1 of 1 cell ran in 1.00 s");
    assertThat(html(FinishedRun.of(notebook("a.ipynb", "no heading", 2), Optional.empty())))
        .contains("<title>Passed: a.ipynb</title>", " · 2 cells, none failed</p>");
  }

  @Test
  void aFailureHasItsRankAndLine() {
    assertThat(html(FinishedRun.of(notebook("a.ipynb", "# A", 2), Optional.of(FAILURE))))
        .contains("<title>Failed: A</title>")
        .containsSubsequence(
            "What went wrong",
            "<p class=\"place\">rank 1 failed in cell 2, line 3</p>",
            "<b>ArrayIndexOutOfBoundsException</b>: Index 3 out of bounds for length 3",
            "<h2>Contents</h2>");
    var timeout =
        new CellFailure(
            CellFailure.Cause.INTERRUPTED,
            "Timeout",
            "cell 2 must end",
            List.of("cell 2 must end"));
    assertThat(html(FinishedRun.of(notebook("a.ipynb", "# A", 2), Optional.of(timeout))))
        .contains("<b>Timeout</b>: cell 2 must end")
        .doesNotContain("class=\"place\"");
  }

  @Test
  void theRunAndItsFindingsAreAtTheTop() {
    var notebook = notebook("a.ipynb", "# A", 1);
    notebook
        .metadata()
        .add(
            "braid",
            JsonParser.parseString(
                """
                {"id": "20260131T235959000Z-0a1b2c",
                 "git": {"revision": "0123456789ab", "dirty": true},
                 "data": [{"id": "1", "kind": "profile", "problem": "P", "found": "no study"},
                          {"id": "2", "kind": "study", "problem": "AG → GEMM", "found": "4 <splits>"}]}
                """));
    assertThat(html(FinishedRun.of(notebook, Optional.empty())))
        .containsSubsequence(
            "<header class=\"banner ok\">",
            "<p class=\"finding\">4 &lt;splits&gt; <a href=\"#n1\">AG → GEMM</a></p>",
            "</header>",
            "<h2>Contents</h2>",
            "<tr><th>run</th><td>20260131T235959000Z-0a1b2c</td></tr>",
            "<tr><th>revision</th><td>0123456789ab, changed</td></tr>")
        .doesNotContain("no study");
    assertThat(
            html(
                FinishedRun.of(notebook, Optional.empty()),
                FinishedRun.of(notebook("b.ipynb", "# B", 1), Optional.empty())))
        .contains("<span class=\"verdict\">Passed</span> 2 notebooks</h1>")
        .contains("<tr><th>run of a.ipynb</th><td>20260131T235959000Z-0a1b2c</td></tr>")
        .contains("<span class=\"quiet\">B</span>");
    assertThat(html(FinishedRun.of(notebook("b.ipynb", "# B", 1), Optional.empty())))
        .doesNotContain("class=\"finding\"", "<th>run</th>");
  }
}
